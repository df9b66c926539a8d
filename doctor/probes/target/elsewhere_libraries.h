// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "doctor/elf/library.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// One library, as a file from here would meet it on the machine of a snapshot.
struct ElsewhereLibrary {
  enum class State { Found, Missing, Open };  // Open: the snapshot does not say
  State state = State::Open;
  std::string path;                       // "" where only the soname is known
  bool with_torch = false;                // there because `import torch` loaded it
  std::shared_ptr<const ElfLibrary> own;  // it came with the file: lies in the same wheel or folder
  const ExportTable* table = nullptr;     // its names, from a snapshot taken --with-exports
};

// The libraries of that machine, as far as its snapshot tells.
class ElsewhereLibraries {
 public:
  // `files` sees what was named with --so; `machine` outlives this object, and is read only now.
  ElsewhereLibraries(const Host& files, const Snapshot& machine);

  // Who wants it has these folders on its RPATH or RUNPATH: as `files` names them, and as that machine would
  // once the file lies in its site-packages.
  struct Folder {
    std::string here, there;
  };
  ElsewhereLibrary find(const std::string& soname, const std::vector<Folder>& folders);

  // Tables of the libraries whose names every later library sees; empty without --with-exports.
  const std::vector<const ExportTable*>& global() const { return global_; }
  const ExportTable* table(const std::string& soname) const;
  bool has_tables() const { return !tables_.empty(); }

 private:
  void learn_torch(const Torch& torch);
  void learn_tables(const Exports& exports);
  ElsewhereLibrary find_driver() const;
  bool is_known_missing(const std::string& soname) const;

  LibraryCache beside_;
  const Snapshot& machine_;
  std::set<std::string> with_torch_;          // sonames
  std::map<std::string, std::string> paths_;  // of every library file that the snapshot lists -> its soname
  std::set<std::string> reachable_, missing_;
  std::map<std::string, const ExportTable*> tables_;  // by soname and by file name
  std::vector<const ExportTable*> global_;
};

// "libc.so.6" and what else comes with glibc.
bool is_glibc_library(const std::string& soname);

}  // namespace scankit
