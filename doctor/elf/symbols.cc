// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/symbols.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit::elf {
namespace {

constexpr std::uint64_t kHashLimit = 32u << 20;  // libtorch_cpu's: 0.7 MB
constexpr std::uint64_t kChainStep = 16;         // entries of a chain read at a time
constexpr std::uint32_t kTableLimit = 1u << 20;  // symbols of a table
constexpr std::size_t kUndefinedLimit = 1u
                                        << 17;  // undefined ones; the largest extensions have some thousand

// The conditions of do_lookup_x() and check_match() in glibc's elf/dl-lookup.c. A value of 0 means
// undefined, except for absolute and thread-local symbols.
bool may_be_exported(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info), type = ELF64_ST_TYPE(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  if (symbol.st_shndx == SHN_UNDEF || visibility == STV_HIDDEN || visibility == STV_INTERNAL) return false;
  if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) return false;
  if (symbol.st_value == 0 && symbol.st_shndx != SHN_ABS && type != STT_TLS) return false;
  return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_COMMON ||
         type == STT_TLS || type == STT_GNU_IFUNC;
}

// No linker writes an empty or unprintable name, and none leaves an entry of zeros behind the first: such
// tables were overwritten. (None among 1056 libraries of torch, its CUDA wheels and Debian.)
bool is_blank(const Elf64_Sym& symbol) {
  return symbol.st_name == 0 && symbol.st_info == 0 && symbol.st_other == 0 && symbol.st_shndx == 0 &&
         symbol.st_value == 0 && symbol.st_size == 0;
}

bool is_plausible_name(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f;
  });
}

}  // namespace

// dl_new_hash() of glibc. sysv_hash() is elf_hash() of the gABI, "Hash Table".
std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::uint32_t sysv_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    hash ^= (hash & 0xf0000000u) >> 24;
    hash &= 0x0fffffffu;
  }
  return hash;
}

SymbolQuery::SymbolQuery(std::string_view wanted) : name(wanted), gnu_hash(scankit::elf::gnu_hash(wanted)) {}
SymbolQuery::SymbolQuery(const UndefinedSymbol& symbol)
    : name(symbol.name),
      gnu_hash(scankit::elf::gnu_hash(symbol.name)),
      version(symbol.version),
      version_hidden(symbol.version_hidden) {}

Result<Symbols> Symbols::open(const Image& image, const Dynamic& dynamic, Versions versions) {
  Symbols symbols;
  symbols.image_ = image;
  symbols.dynamic_ = dynamic;
  symbols.versions_ = std::move(versions);
  // The loader takes DT_GNU_HASH where a library has both (_dl_setup_hash).
  if (dynamic.gnu_hash != 0) {
    SCANKIT_CHECK(symbols.open_gnu(dynamic.gnu_hash));
  } else if (dynamic.sysv_hash != 0) {
    SCANKIT_CHECK(symbols.open_sysv(dynamic.sysv_hash));
  }
  return symbols;
}

// The table is a header, a Bloom filter of 64-bit words, the buckets, and the chains. The chains are most
// of it: find_gnu() reads from them what it needs. A power of two as the number of words lets a mask
// select one.
Result<void> Symbols::open_gnu(std::uint64_t address) {
  struct Header {
    std::uint32_t buckets, first, bloom_words, bloom_shift;
  };
  SCANKIT_TRY(const Bytes start, image_.at_address(address, sizeof(Header)));
  const Header header = *start.read<Header>(0);
  if (header.bloom_words == 0 || (header.bloom_words & (header.bloom_words - 1)) != 0)
    return malformed_elf(message("the hash table's filter has an impossible size"));
  const std::uint64_t bloom_size = std::uint64_t{header.bloom_words} * 8;
  const std::uint64_t bucket_size = std::uint64_t{header.buckets} * 4;
  if (bloom_size > kHashLimit || bucket_size > kHashLimit)
    return malformed_elf(message("the hash table is too long"));
  SCANKIT_TRY(const Bytes table, image_.at_address(address, sizeof(Header) + bloom_size + bucket_size));
  bloom_ = *table.slice(sizeof(Header), bloom_size);
  buckets_ = *table.slice(sizeof(Header) + bloom_size, bucket_size);
  bucket_count_ = header.buckets;
  first_hashed_ = header.first;
  bloom_shift_ = header.bloom_shift & 31;  // as the processor takes it in the loader
  chain_address_ = address + sizeof(Header) + bloom_size + bucket_size;  // inside the segment, as just read
  return {};
}

Result<void> Symbols::open_sysv(std::uint64_t address) {
  struct Header {
    std::uint32_t buckets, chains;
  };
  SCANKIT_TRY(const Bytes start, image_.at_address(address, sizeof(Header)));
  const Header header = *start.read<Header>(0);
  const std::uint64_t size = (2 + std::uint64_t{header.buckets} + std::uint64_t{header.chains}) * 4;
  if (size > kHashLimit) return malformed_elf(message("the hash table is too long"));
  SCANKIT_TRY(sysv_, image_.at_address(address, size));
  bucket_count_ = header.buckets;
  chain_count_ = header.chains;
  return {};
}

// check_match() of elf/dl-lookup.c. Reads the symbol, and of its name as many bytes as the wanted one has.
Symbols::Match Symbols::matches(std::uint32_t index, const SymbolQuery& query) const {
  const auto address = checked_add(dynamic_.symbols, std::uint64_t{index} * sizeof(Elf64_Sym));
  if (!address) return {};
  const auto bytes = image_.at_address(*address, sizeof(Elf64_Sym));
  if (!bytes) return {};
  const Elf64_Sym symbol = *bytes->read<Elf64_Sym>(0);
  if (!may_be_exported(symbol)) return {};
  const auto name = dynamic_.strings.piece(symbol.st_name, query.name.size() + 1);
  if (!name || name->c_string(0) != query.name) return {};

  if (!versions_.has_symbol_versions()) return {.taken = true};
  const std::uint16_t raw = versions_.of_symbol(image_, index);
  const auto number = static_cast<std::uint16_t>(raw & 0x7fff);
  const bool hidden = (raw & 0x8000) != 0;
  if (query.version.empty()) {
    // Index 2 is the oldest version, which a program linked before
    // versioning means; a newer one only by default.
    if (number < 3) return {.taken = true};
    return {.taken = false, .only_by_default_version = !hidden};
  }
  const std::string defined = versions_.definition_name(number);
  // A need that is not hidden also takes a definition without a version, unless that is hidden itself.
  if (defined == query.version) return {.taken = true};
  return {.taken = !query.version_hidden && defined.empty() && !hidden};
}

// True where this symbol settles the question; counts those that settle it only if they are alone.
bool Symbols::accepts(std::uint32_t index, const SymbolQuery& query, unsigned& default_versions) const {
  const Match match = matches(index, query);
  if (match.only_by_default_version) ++default_versions;
  return match.taken;
}

// The filter answers for most names that are not there, without reading a chain. The lowest bit of a chain's
// entry marks its end and is not part of the hash.
bool Symbols::find_gnu(const SymbolQuery& query) const {
  if (bucket_count_ == 0) return false;
  const std::uint32_t hash = query.gnu_hash;
  const auto word = bloom_.element<std::uint64_t>((hash / 64) & (bloom_.size() / 8 - 1));
  const std::uint64_t bits =
      (std::uint64_t{1} << (hash % 64)) | (std::uint64_t{1} << ((hash >> bloom_shift_) % 64));
  if (!word || (*word & bits) != bits) return false;
  std::uint32_t index = buckets_.element<std::uint32_t>(hash % bucket_count_).value_or(0);
  if (index == 0 || index < first_hashed_) return false;
  unsigned default_versions = 0;
  for (std::uint32_t read = 0; read < (1u << 20); read += kChainStep) {  // no honest chain is that long
    const auto at = checked_add(chain_address_, (std::uint64_t{index} - first_hashed_) * 4);
    if (!at) return false;
    const std::uint64_t left = image_.bytes_from(*at) / 4;
    const auto piece = image_.at_address(*at, std::min(left, kChainStep) * 4);
    if (!piece || piece->size() == 0) return false;
    for (std::uint64_t i = 0; i < piece->size() / 4; ++i, ++index) {
      const std::uint32_t entry = *piece->element<std::uint32_t>(i);
      if ((entry | 1) == (hash | 1) && accepts(index, query, default_versions)) return true;
      if ((entry & 1) != 0) return default_versions == 1;  // one default version alone is taken
    }
  }
  return false;
}

bool Symbols::find_sysv(const SymbolQuery& query) const {
  if (bucket_count_ == 0) return false;
  std::uint32_t index = sysv_.element<std::uint32_t>(2 + sysv_hash(query.name) % bucket_count_).value_or(0);
  unsigned default_versions = 0;
  for (std::uint32_t steps = 0; index != 0 && index < chain_count_ && steps < chain_count_; ++steps) {
    if (accepts(index, query, default_versions)) return true;
    index = sysv_.element<std::uint32_t>(2 + std::uint64_t{bucket_count_} + index).value_or(0);
  }
  return default_versions == 1;
}

bool Symbols::exports(const SymbolQuery& query) const {
  return bloom_.size() != 0 ? find_gnu(query) : find_sysv(query);
}

// The undefined names stand before the hashed ones. GNU ld writes first_hashed_ == 1 where nothing is
// exported at all, and then only the section table knows the length.
Result<std::uint32_t> Symbols::symbol_count() const {
  if (bloom_.size() == 0 && sysv_.size() != 0) return chain_count_;
  if (first_hashed_ > 1) return first_hashed_;
  return table_length();
}

// Entries of .dynsym. DT_GNU_HASH does not say how many names it covers.
std::uint32_t Symbols::table_length() const {
  for (const Section& s : image_.sections())
    if (s.type == SHT_DYNSYM && s.address == dynamic_.symbols)
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(s.size / sizeof(Elf64_Sym), kTableLimit));
  // Every linker puts .dynstr right behind .dynsym.
  if (dynamic_.string_address > dynamic_.symbols)
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(
        (dynamic_.string_address - dynamic_.symbols) / sizeof(Elf64_Sym), kTableLimit));
  return 1;
}

Result<std::vector<UndefinedSymbol>> Symbols::undefined() const {
  std::vector<UndefinedSymbol> found;
  if (dynamic_.symbols == 0) return found;
  SCANKIT_TRY(const std::uint32_t count, symbol_count());
  if (count > kTableLimit) return malformed_elf(message("more dynamic symbols than any library has"));
  SCANKIT_TRY(const Bytes table,
              image_.at_address(dynamic_.symbols, std::uint64_t{count} * sizeof(Elf64_Sym)));
  for (std::uint32_t i = 1; i < count; ++i) {
    const Elf64_Sym symbol = *table.element<Elf64_Sym>(i);
    if (is_blank(symbol)) return malformed_elf(message("entry {} of the symbol table is blank", i));
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) continue;
    if (found.size() >= kUndefinedLimit)
      return malformed_elf(message("more than {} undefined symbols, which no library has", kUndefinedLimit));
    UndefinedSymbol undefined;
    SCANKIT_TRY(undefined.name, dynamic_.strings.at(symbol.st_name));
    if (!is_plausible_name(undefined.name))
      return malformed_elf(message("the name of symbol {} is damaged in the string table", i));
    undefined.weak = binding == STB_WEAK;
    if (versions_.has_symbol_versions()) {
      const auto number = static_cast<std::uint16_t>(versions_.of_symbol(image_, i) & 0x7fff);
      if (const VersionNeed* need = number > 1 ? versions_.need(number) : nullptr) {
        undefined.version = need->name;
        undefined.version_file = need->file;
        undefined.version_hidden = need->hidden;
      }
    }
    found.push_back(std::move(undefined));
  }
  return found;
}

Result<std::vector<std::string>> Symbols::exported() const {
  std::vector<std::string> found;
  if (dynamic_.symbols == 0) return found;
  const std::uint32_t count = table_length();
  SCANKIT_TRY(const Bytes table,
              image_.at_address(dynamic_.symbols, std::uint64_t{count} * sizeof(Elf64_Sym)));
  for (std::uint32_t i = 1; i < count; ++i) {
    const Elf64_Sym symbol = *table.element<Elf64_Sym>(i);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name == 0) continue;
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) continue;
    SCANKIT_TRY(std::string name, dynamic_.strings.at(symbol.st_name));
    found.push_back(std::move(name));
  }
  return found;
}

namespace {

constexpr std::uint64_t kScanPiece = 1u << 20;

// The prefixes sorted, so that the one a name begins with is
// found by bisection. None may be a prefix of another.
class PrefixSet {
 public:
  explicit PrefixSet(std::vector<std::string> prefixes) : prefixes_(std::move(prefixes)) {
    std::ranges::sort(prefixes_);
    std::erase_if(prefixes_, [](const std::string& p) { return p.empty(); });
    const auto covered = [](const std::string& shorter, const std::string& longer) {
      return longer.starts_with(shorter);
    };
    prefixes_.erase(std::unique(prefixes_.begin(), prefixes_.end(), covered), prefixes_.end());
  }
  bool empty() const { return prefixes_.empty(); }
  bool begins(std::string_view name) const {
    const auto after = std::ranges::upper_bound(prefixes_, name, std::less<>{});
    return after != prefixes_.begin() && name.starts_with(*std::prev(after));
  }

 private:
  std::vector<std::string> prefixes_;
};

}  // namespace

// The string table holds the undefined names too, so each hit is looked up. A linker may merge a name into
// the tail of a longer one; no mangled name ("_Z...") is the tail of another, and only such prefixes make
// sense here.
std::vector<std::string> Symbols::exported_with_prefix(const std::vector<std::string>& prefixes,
                                                       std::size_t limit) const {
  std::vector<std::string> found;
  const PrefixSet wanted(prefixes);
  if (wanted.empty()) return found;
  std::string carried;  // a name that the end of a piece cut
  // The table may be 10 MB: it is read in pieces, and a name across a boundary is put together in `carried`.
  for (std::uint64_t at = 0; at < dynamic_.strings.size() && found.size() < limit; at += kScanPiece) {
    const auto piece = dynamic_.strings.piece(at, std::min(kScanPiece, dynamic_.strings.size() - at));
    if (!piece) break;
    std::string_view rest = piece->text();
    while (!rest.empty() && found.size() < limit) {
      const auto end = rest.find('\0');
      if (end == std::string_view::npos) {
        if (carried.size() + rest.size() > kScanPiece) return found;  // no name is that long
        carried += rest;
        break;
      }
      std::string_view name = rest.substr(0, end);
      if (!carried.empty()) {
        carried += name;
        name = carried;
      }
      if (wanted.begins(name) && exports(SymbolQuery(name))) found.emplace_back(name);
      carried.clear();
      rest.remove_prefix(end + 1);
    }
  }
  return found;
}

}  // namespace scankit::elf
