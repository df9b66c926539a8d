// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/elf/library.h"
#include "doctor/model/snapshot.h"
#include "doctor/torch_abi/symbol_index.h"

// Resolves a file of this machine with the facts that a snapshot has about another one (--so with --from).
// TargetLibraries finds the libraries, TargetSymbols answers for the symbols, and TargetResolver walks what
// a file needs and asks both. Each answer may be Open; only a fact makes something missing.
namespace scankit::probes {

// One library, as a file from here would meet it on the machine of a snapshot.
struct TargetLibrary {
  enum class State { Found, Missing, Open };  // Open: the snapshot does not say
  State state = State::Open;
  std::string path;                            // "" where only the soname is known
  bool with_torch = false;                     // there because `import torch` loaded it
  std::shared_ptr<const elf::ElfLibrary> own;  // it came with the file: lies in the same wheel or folder
  const ExportTable* table = nullptr;          // its names, from a snapshot taken --with-exports
};

// The libraries of that machine, as far as its snapshot tells.
class TargetLibraries {
 public:
  // `files` sees what was named with --so; `machine` outlives this object, and is read only now. `named`: the libraries among
  // what was named, by file name.
  TargetLibraries(const Host& files, const Snapshot& machine, std::map<std::string, std::string> named);

  // Who wants it has these folders on its RPATH or RUNPATH: as `files` names them, and as that machine would
  // once the file lies in its site-packages.
  struct Folder {
    std::string here, there;
  };
  TargetLibrary find(const std::string& soname, const std::vector<Folder>& folders);

  // Tables of the libraries whose names every later library sees; empty without --with-exports.
  const std::vector<const ExportTable*>& global() const { return global_; }
  const ExportTable* table(const std::string& soname) const;
  bool has_tables() const { return !tables_.empty(); }

 private:
  void learn_torch(const Torch& torch);
  void learn_tables(const Exports& exports);
  TargetLibrary find_driver() const;
  bool is_known_missing(const std::string& soname) const;

  elf::LibraryCache beside_;
  std::map<std::string, std::string> named_;
  const Snapshot& machine_;
  std::set<std::string> with_torch_;          // sonames
  std::map<std::string, std::string> paths_;  // of every library file that the snapshot lists -> its soname
  std::set<std::string> reachable_, missing_;
  std::map<std::string, const ExportTable*> tables_;  // by soname and by file name
  std::vector<const ExportTable*> global_;
};

// "libc.so.6" and what else comes with glibc.
bool is_glibc_library(const std::string& soname);

// Who wants names, and what it would be loaded with.
struct TargetScope {
  const elf::ElfLibrary* file = nullptr;
  std::string tag;                                 // "cpython-311-x86_64-linux-gnu", "abi3", ""
  bool tag_is_promised = false;                    // its wheel's tags promise that it fits that Python
  std::map<std::string, TargetLibrary> by_soname;  // everything that it needs, directly or not
};

// Whether that machine provides a name.
struct NameAnswer {
  enum class State { Provided, Missing, Open };
  State state = State::Open;
  MissingSymbol missing;  // where it is missing
  Message why;            // Open: what is not known. Provided: what was taken on trust, if anything
};

// Names by their owner: torch's through the symbol index, those of glibc
// and libstdc++ by their versions, Python's by the file's tag, CUDA's by
// the soname; all of them by the export tables where the snapshot has some.
class TargetSymbols {
 public:
  TargetSymbols(const Snapshot& machine, const TargetLibraries& libraries,
                const torch_abi::SymbolIndex& symbol_index);
  NameAnswer ask(const elf::UndefinedSymbol& symbol, const TargetScope& scope);
  // "2.39" of "GLIBC_2.39": the newest of that family which the machine defines; "" where it is not known.
  std::string newest_version(const std::string& wanted) const;
  // Nothing where it is not known.
  std::optional<bool> defines_version(const std::string& library, const std::string& version) const;

 private:
  NameAnswer ask_tables(const elf::UndefinedSymbol& symbol, const TargetScope& scope);
  NameAnswer ask_torch(const elf::UndefinedSymbol& symbol, const TargetScope& scope);
  NameAnswer ask_python(const TargetScope& scope) const;
  NameAnswer ask_versioned(const elf::UndefinedSymbol& symbol, const TargetScope& scope) const;
  NameAnswer ask_others(const elf::UndefinedSymbol& symbol, const TargetScope& scope) const;
  const std::set<std::string>* names_of(const ExportTable& table);
  bool offers(const ExportTable& table, const elf::UndefinedSymbol& symbol);
  void explain_torch(const std::string& name, MissingSymbol& missing) const;

  const Snapshot& machine_;
  const TargetLibraries& libraries_;
  const torch_abi::SymbolIndex& index_;
  int release_ = -1;      // the column of that machine's torch
  Message release_note_;  // why there is none
  std::map<const ExportTable*, std::optional<std::set<std::string>>> names_;
};

// Resolves files from here on the machine of a snapshot, of which no file is at hand. What its facts do not
// decide goes into Extension::undecided and is never taken for good.
class TargetResolver {
 public:
  // `files` sees what was named; `machine` is the snapshot as it was taken, and outlives this object. `named`: as above.
  TargetResolver(const Host& files, const Snapshot& machine, std::map<std::string, std::string> named);
  // `folder`: the part of the file's path that would be a folder of sys.path there. `tag_is_promised`: the
  // tags of its wheel fit that Python.
  void resolve(Extension& copy, const std::string& folder, bool tag_is_promised);

 private:
  struct Walk;
  std::vector<TargetLibraries::Folder> folders_of(const elf::ElfLibrary& library,
                                                  const std::string& folder) const;
  std::vector<std::string> needs_of(const std::string& soname, const TargetLibrary& library) const;
  void walk(const elf::ElfLibrary& file, Walk& walk);
  void take_library(const std::string& soname, const std::string& needed_by, const TargetLibrary& library,
                    Extension& copy) const;
  void take_versions(const elf::ElfLibrary& library, Extension& copy) const;
  void take_names(const TargetScope& scope, Extension& copy);

  const Snapshot& machine_;
  elf::LibraryCache files_;
  TargetLibraries libraries_;
  TargetSymbols names_;
  std::string site_;  // where a wheel would be unpacked there
};

}  // namespace scankit::probes
