// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/dynamic.h"
#include "doctor/elf/versions.h"

namespace scankit {

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

}  // namespace scankit
