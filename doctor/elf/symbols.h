// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/image.h"

namespace scankit::elf {

// Names of an object, read one at a time: libtorch_cpu's are
// 10 MB, of which a question needs a few hundred bytes.
class StringTable {
 public:
  StringTable() = default;
  StringTable(FileBytes file, std::uint64_t offset, std::uint64_t size)
      : file_(std::move(file)), offset_(offset), size_(size) {}
  std::uint64_t size() const { return size_; }
  Result<std::string> at(std::uint64_t index) const;
  // `length` bytes from `index`, for those who walk the whole table.
  Result<Bytes> piece(std::uint64_t index, std::uint64_t length) const;

 private:
  FileBytes file_;
  std::uint64_t offset_ = 0, size_ = 0;
};

// PT_DYNAMIC: what the loader goes by.
struct Dynamic {
  bool present = false;             // false: a program linked statically
  std::vector<std::string> needed;  // DT_NEEDED, in the order of the file
  std::string soname, rpath, runpath;
  // A present but empty entry is not a missing one: an empty DT_RUNPATH still hides DT_RPATH.
  bool has_soname = false, has_rpath = false, has_runpath = false;
  bool symbolic = false;        // DT_SYMBOLIC or DF_SYMBOLIC
  bool no_default_lib = false;  // DF_1_NODEFLIB: neither the cache's default folders nor the default folders
  StringTable strings;
  // Addresses, 0 where the entry is missing.
  std::uint64_t string_address = 0, symbols = 0, gnu_hash = 0, sysv_hash = 0, version_symbols = 0;
  std::uint64_t version_needs = 0, version_need_count = 0, version_defs = 0, version_def_count = 0;
};
Result<Dynamic> read_dynamic(const Image& image);

// The GNU build-id in lower-case hex; empty where there is none.
std::string read_build_id(const Image& image);
// The program interpreter (PT_INTERP); empty for a library.
std::string read_interpreter(const Image& image);

struct VersionNeed {
  std::string file, name;  // "libc.so.6", "GLIBC_2.17"
  std::uint16_t index = 0;
  bool weak = false;    // the loader only warns where it is missing
  bool hidden = false;  // only this very version will do
};
struct VersionDefinition {
  std::string name;
  std::uint16_t index = 0;
  bool base = false;  // names the file, not a version
};

// Symbol versioning as the loader reads it (LSB Core, "Symbol Versioning"; glibc elf/dl-version.c).
class Versions {
 public:
  static Result<Versions> read(const Image& image, const Dynamic& dynamic);

  const std::vector<VersionNeed>& needs() const { return needs_; }
  const std::vector<VersionDefinition>& definitions() const { return definitions_; }
  bool has_definitions() const { return has_definitions_; }
  bool has_symbol_versions() const { return symbol_versions_ != 0; }
  // The versym entry of a symbol: bit 15 is "hidden", the rest an index; 1 (global) where it cannot be read.
  std::uint16_t of_symbol(const Image& image, std::uint32_t symbol) const;
  const VersionNeed* need(std::uint16_t index) const;
  // Empty for the local, global and base indices.
  std::string definition_name(std::uint16_t index) const;
  bool defines(const std::string& name) const;

 private:
  std::vector<VersionNeed> needs_;
  std::vector<VersionDefinition> definitions_;
  bool has_definitions_ = false;
  std::uint64_t symbol_versions_ = 0;
};

struct UndefinedSymbol {
  std::string name;
  bool weak = false;
  std::string version, version_file;  // "GLIBC_2.17" of "libc.so.6"; empty for an unversioned name
  bool version_hidden = false;
};

// A name as somebody asks for it.
struct SymbolQuery {
  std::string_view name;
  std::uint32_t gnu_hash = 0;
  std::string_view version;  // empty: no particular one
  bool version_hidden = false;
  explicit SymbolQuery(std::string_view wanted);
  explicit SymbolQuery(const UndefinedSymbol& symbol);
};

// .dynsym through DT_GNU_HASH or DT_HASH. Looking a name up reads the hash table once and then some hundred
// bytes, so that libtorch_cpu's 75 thousand names cost nothing.
class Symbols {
 public:
  static Result<Symbols> open(const Image& image, const Dynamic& dynamic, Versions versions);

  // Whether the loader, asked for this name, would take it from here (glibc elf/dl-lookup.c do_lookup_x).
  bool exports(const SymbolQuery& query) const;
  // Everything that must or may come from elsewhere.
  Result<std::vector<UndefinedSymbol>> undefined() const;
  // Every defined name that others may take, in the table's order. For a library of torch that is 10 MB of
  // names: the makers of tables ask for them, a diagnosis does not.
  Result<std::vector<std::string>> exported() const;
  // Exported names that begin with one of the prefixes; in no particular order, at most `limit`. Streams the
  // string table.
  std::vector<std::string> exported_with_prefix(const std::vector<std::string>& prefixes,
                                                std::size_t limit) const;
  const Versions& versions() const { return versions_; }

 private:
  struct Match {
    bool taken = false, only_by_default_version = false;
  };
  Result<void> open_gnu(std::uint64_t address);
  Result<void> open_sysv(std::uint64_t address);
  Result<std::uint32_t> symbol_count() const;
  std::uint32_t table_length() const;
  bool find_gnu(const SymbolQuery& query) const;
  bool find_sysv(const SymbolQuery& query) const;
  Match matches(std::uint32_t index, const SymbolQuery& query) const;
  bool accepts(std::uint32_t index, const SymbolQuery& query, unsigned& default_versions) const;

  Image image_;
  Dynamic dynamic_;
  Versions versions_;
  // DT_GNU_HASH
  std::uint32_t bucket_count_ = 0, first_hashed_ = 0, bloom_shift_ = 0;
  std::uint64_t chain_address_ = 0;
  Bytes bloom_, buckets_;
  // DT_HASH
  std::uint32_t chain_count_ = 0;
  Bytes sysv_;
};

std::uint32_t gnu_hash(std::string_view name);
std::uint32_t sysv_hash(std::string_view name);

}  // namespace scankit::elf
