// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"
#include "doctor/probes/target/elsewhere_libraries.h"
#include "doctor/torch_abi/atlas.h"

namespace scankit {

// Who wants names, and what it would be loaded with.
struct ElsewhereScope {
  const ElfLibrary* file = nullptr;
  std::string tag;                                    // "cpython-311-x86_64-linux-gnu", "abi3", ""
  bool tag_is_promised = false;                       // its wheel's tags promise that it fits that Python
  std::map<std::string, ElsewhereLibrary> by_soname;  // everything that it needs, directly or not
};

// Whether that machine provides a name.
struct NameAnswer {
  enum class State { Provided, Missing, Open };
  State state = State::Open;
  MissingSymbol missing;  // where it is missing
  std::string why;        // Open: what is not known. Provided: what was taken on trust, if anything
};

// Names by their owner: torch's through the atlas, those of glibc and libstdc++ by their versions, Python's
// by the file's tag, CUDA's by the soname; all of them by the export tables where the snapshot has some.
class ElsewhereNames {
 public:
  ElsewhereNames(const Snapshot& machine, const ElsewhereLibraries& libraries, const Atlas& atlas);
  NameAnswer ask(const UndefinedSymbol& symbol, const ElsewhereScope& scope);
  // "2.39" of "GLIBC_2.39": the newest of that family which the machine defines; "" where it is not known.
  std::string newest_version(const std::string& wanted) const;
  // Nothing where it is not known.
  std::optional<bool> defines_version(const std::string& library, const std::string& version) const;

 private:
  NameAnswer ask_tables(const UndefinedSymbol& symbol, const ElsewhereScope& scope);
  NameAnswer ask_torch(const UndefinedSymbol& symbol, const ElsewhereScope& scope);
  NameAnswer ask_python(const ElsewhereScope& scope) const;
  NameAnswer ask_versioned(const UndefinedSymbol& symbol, const ElsewhereScope& scope) const;
  NameAnswer ask_others(const UndefinedSymbol& symbol, const ElsewhereScope& scope) const;
  const std::set<std::string>* names_of(const ExportTable& table);
  bool offers(const ExportTable& table, const UndefinedSymbol& symbol);
  void explain_torch(const std::string& name, MissingSymbol& missing) const;

  const Snapshot& machine_;
  const ElsewhereLibraries& libraries_;
  const Atlas& atlas_;
  int release_ = -1;          // the column of that machine's torch
  std::string release_note_;  // why there is none
  std::map<const ExportTable*, std::optional<std::set<std::string>>> names_;
};

}  // namespace scankit
