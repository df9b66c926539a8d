// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/probes/target/elsewhere_names.h"

namespace scankit {

// Resolves files from here on the machine of a snapshot, of which no file is at hand. What its facts do not
// decide goes into Extension::undecided and is never taken for good.
class ElsewhereResolver {
 public:
  // `files` sees what was named; `machine` is the snapshot as it was taken, and outlives this object.
  ElsewhereResolver(const Host& files, const Snapshot& machine);
  // `folder`: the part of the file's path that would be a folder of sys.path there. `tag_is_promised`: the
  // tags of its wheel fit that Python.
  void resolve(Extension& copy, const std::string& folder, bool tag_is_promised);

 private:
  struct Walk;
  std::vector<ElsewhereLibraries::Folder> folders_of(const ElfLibrary& library,
                                                     const std::string& folder) const;
  std::vector<std::string> needs_of(const std::string& soname, const ElsewhereLibrary& library) const;
  void walk(const ElfLibrary& file, Walk& walk);
  void take_library(const std::string& soname, const std::string& needed_by, const ElsewhereLibrary& library,
                    Extension& copy) const;
  void take_versions(const ElfLibrary& library, Extension& copy) const;
  void take_names(const ElsewhereScope& scope, Extension& copy);

  const Snapshot& machine_;
  LibraryCache files_;
  ElsewhereLibraries libraries_;
  ElsewhereNames names_;
  std::string site_;  // where a wheel would be unpacked there
};

}  // namespace scankit
