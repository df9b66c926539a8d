// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/symbol_index.h"

#include <zstd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "doctor/elf/mangling.h"

extern "C" const char scankit_torch_abi_symbol_index[], scankit_torch_abi_symbol_index_end[];
extern "C" const char scankit_torch_abi_headers[], scankit_torch_abi_headers_end[];

namespace scankit::torch_abi {
namespace {

Error malformed(const Message& what) {
  return {Errc::Malformed, message("the symbol index is damaged: {}", what),
          "make it again with ci/release/symbol_index.sh"};
}

// Takes numbers and texts from the front; every length is checked against what is left.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  std::optional<std::string_view> take(std::uint64_t length) {
    if (length > rest_.size()) return std::nullopt;
    const auto piece = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return piece;
  }
  std::optional<std::uint64_t> number(unsigned width) {
    const auto piece = take(width);
    if (!piece) return std::nullopt;
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<unsigned char>((*piece)[i])} << (8 * i);
    return value;
  }
  std::optional<std::string> short_text() {
    const auto length = number(1);
    const auto piece = length ? take(*length) : std::nullopt;
    if (!piece) return std::nullopt;
    return std::string(*piece);
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// `size` comes from the header, where kSymbolIndexLimit bounds it.
Result<std::string> inflate(std::string_view packed, std::uint64_t size) {
  std::string raw(size, '\0');
  const std::size_t got = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0 || got != size) return malformed("a stream does not inflate to its length");
  return raw;
}

Result<std::vector<IndexedRelease>> read_releases(Input& input, std::uint64_t count) {
  std::vector<IndexedRelease> releases;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto minor = input.short_text();
    const auto strings = input.number(1), pybind = input.number(1);
    const auto tags = input.short_text();
    if (!minor || !strings || !pybind || !tags) return malformed("it ends inside the releases");
    releases.push_back({*minor, *strings != 0, static_cast<unsigned>(*pybind), *tags});
  }
  return releases;
}

}  // namespace

// Demangled, without string ABI -> releases; of the names that hold a string only.
struct SymbolIndex::StringNames {
  std::once_flag once;
  std::unordered_map<std::string, std::uint64_t> sets;
};

// A place in the names: `name` is that of `index`, `suffix` is where the next one's suffix begins. Only
// first_not_below() fills `set`; next() leaves it behind.
struct SymbolIndex::Cursor {
  std::size_t index = 0, suffix = 0;
  std::string name;
  ReleaseSet set;
  bool at_end = false;
};

// One step on; the stream was checked by index().
bool SymbolIndex::next(Cursor& cursor) const {
  if (++cursor.index >= name_count_) {
    cursor.at_end = true;
    return false;
  }
  const auto shared = static_cast<unsigned char>(prefixes_[cursor.index]);
  const auto end = suffixes_.find('\0', cursor.suffix);
  cursor.name.resize(shared);
  cursor.name.append(suffixes_, cursor.suffix, end - cursor.suffix);
  cursor.suffix = end + 1;
  return true;
}

// Walks the whole stream once, so that lookups may trust it, and marks every kStride-th name.
Result<void> SymbolIndex::index() {
  std::string name, before;
  std::size_t at = 0;
  for (std::size_t i = 0; i < name_count_; ++i) {
    const auto shared = static_cast<unsigned char>(prefixes_[i]);
    const auto end = suffixes_.find('\0', at);
    if (end == std::string::npos || shared > name.size())
      return malformed("a name reaches outside the streams");
    before = name;
    name.resize(shared);
    name.append(suffixes_, at, end - at);
    at = end + 1;
    // Lookups bisect the names.
    if (i > 0 && name <= before) return malformed("its names are not sorted");
    const auto low = static_cast<unsigned char>(ids_[i]),
               high = static_cast<unsigned char>(ids_[name_count_ + i]);
    if ((low | high << 8) >= static_cast<int>(sets_.size())) return malformed("a set is not in the table");
    if (i % kStride == 0) marks_.push_back({name, static_cast<std::uint32_t>(at)});
  }
  if (at != suffixes_.size()) return malformed("names are left over");
  return {};
}

Result<SymbolIndex> SymbolIndex::parse(std::string_view bytes) {
  Input input(bytes);
  if (input.take(kSymbolIndexMagic.size()) != kSymbolIndexMagic)
    return malformed("another format or version");
  std::uint64_t numbers[9] = {};
  // In the order of the header: three counts, three raw lengths, three packed lengths.
  for (auto& number : numbers) {
    const auto value = input.number(4);
    if (!value || *value > kSymbolIndexLimit) return malformed("its header is cut or out of bounds");
    number = *value;
  }
  const auto [releases, names, sets, prefix_raw, suffix_raw, id_raw, prefix_size, suffix_size, id_size] =
      numbers;
  // A release is one bit of 64, a set's number has two bytes.
  if (releases > 64 || sets > 0xffff || prefix_raw != names || id_raw != 2 * names)
    return malformed("its header contradicts itself");
  SymbolIndex symbol_index;
  SCANKIT_TRY(symbol_index.releases_, read_releases(input, releases));
  for (std::uint64_t i = 0; i < sets; ++i) {
    const auto exact = input.number(8), twin = input.number(8);
    if (!exact || !twin) return malformed("it ends inside the sets");
    symbol_index.sets_.push_back({*exact, *twin});
  }
  const auto prefixes = input.take(prefix_size), suffixes = input.take(suffix_size),
             ids = input.take(id_size);
  if (!prefixes || !suffixes || !ids || !input.empty()) return malformed("its streams have other lengths");
  SCANKIT_TRY(symbol_index.prefixes_, inflate(*prefixes, prefix_raw));
  SCANKIT_TRY(symbol_index.suffixes_, inflate(*suffixes, suffix_raw));
  SCANKIT_TRY(symbol_index.ids_, inflate(*ids, id_raw));
  symbol_index.name_count_ = names;
  SCANKIT_CHECK(symbol_index.index());
  symbol_index.string_names_ = std::make_shared<StringNames>();
  return symbol_index;
}

// An index that cannot be parsed becomes an empty one; date_file() says so in its answer.
const SymbolIndex& SymbolIndex::built_in() {
  static const SymbolIndex symbol_index =
      parse(std::string_view(scankit_torch_abi_symbol_index,
                             static_cast<std::size_t>(scankit_torch_abi_symbol_index_end -
                                                      scankit_torch_abi_symbol_index)))
          .value_or(SymbolIndex());
  return symbol_index;
}

const SymbolIndex& SymbolIndex::header_lines() {
  static const SymbolIndex lines =
      parse(std::string_view(
                scankit_torch_abi_headers,
                static_cast<std::size_t>(scankit_torch_abi_headers_end - scankit_torch_abi_headers)))
          .value_or(SymbolIndex());
  return lines;
}

// Bisects the marks and walks from there: at most kStride names.
SymbolIndex::Cursor SymbolIndex::first_not_below(std::string_view name) const {
  Cursor cursor;
  if (marks_.empty()) {
    cursor.at_end = true;
    return cursor;
  }
  const auto after = std::ranges::upper_bound(marks_, name, std::less<>{}, &Mark::name);
  const auto mark = after == marks_.begin() ? after : std::prev(after);
  cursor.index = static_cast<std::size_t>(mark - marks_.begin()) * kStride;
  cursor.name = mark->name;
  cursor.suffix = mark->suffix;
  while (!cursor.at_end && cursor.name < name) next(cursor);
  if (cursor.at_end) return cursor;
  const auto low = static_cast<unsigned char>(ids_[cursor.index]);
  const auto high = static_cast<unsigned char>(ids_[name_count_ + cursor.index]);
  cursor.set = sets_[static_cast<std::size_t>(low | high << 8)];
  return cursor;
}

std::optional<ReleaseSet> SymbolIndex::find(std::string_view name) const {
  const Cursor cursor = first_not_below(name);
  if (cursor.at_end || cursor.name != name) return std::nullopt;
  return cursor.set;
}

std::vector<std::string> SymbolIndex::with_prefix(std::string_view prefix, std::size_t limit) const {
  std::vector<std::string> found;
  for (Cursor c = first_not_below(prefix); !c.at_end && c.name.starts_with(prefix) && found.size() < limit;
       next(c))
    found.push_back(c.name);
  return found;
}

std::uint64_t SymbolIndex::find_api(const std::string& name) const {
  if (name_count_ == 0) return 0;
  // Demangles every name that may contain a string, once; a lookup is const, and several threads may ask.
  std::call_once(string_names_->once, [&] {
    for (Cursor c = first_not_below(""); !c.at_end; next(c)) {
      if (!differs_with_string_abi(c.name)) continue;
      const auto low = static_cast<unsigned char>(ids_[c.index]);
      const auto high = static_cast<unsigned char>(ids_[name_count_ + c.index]);
      string_names_->sets[elf::without_string_abi(elf::demangle(c.name))] |=
          sets_[static_cast<std::size_t>(low | high << 8)].api();
    }
  });
  const auto found = string_names_->sets.find(elf::without_string_abi(elf::demangle(name)));
  return found == string_names_->sets.end() ? 0 : found->second;
}

// The format is described in symbol_index.h. Runs on the machine of a maintainer only, so it may take its
// time: zstd at its highest level, and no check of its own. The maker parses the result again before it
// writes it.

namespace {

using SetKey = std::pair<std::uint64_t, std::uint64_t>;

void put(std::string& out, std::uint64_t value, unsigned width) {
  for (unsigned i = 0; i < width; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void put_text(std::string& out, const std::string& text) {
  const auto length = std::min<std::size_t>(text.size(), 255);
  put(out, length, 1);
  out.append(text, 0, length);
}

std::string deflate(const std::string& raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 22);
  packed.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return packed;
}

// The sets that occur, the commonest first: most of the high bytes are then 0, which compresses well.
std::vector<SetKey> set_table(const std::vector<IndexedName>& names) {
  std::map<SetKey, std::size_t> uses;
  for (const IndexedName& name : names) ++uses[{name.set.exact, name.set.twin}];
  std::vector<SetKey> table;
  for (const auto& [set, count] : uses) table.push_back(set);
  std::ranges::stable_sort(table, [&](const SetKey& a, const SetKey& b) { return uses[a] > uses[b]; });
  return table;
}

}  // namespace

std::string write_symbol_index(const std::vector<IndexedRelease>& releases,
                               const std::vector<IndexedName>& names) {
  const std::vector<SetKey> table = set_table(names);
  std::map<SetKey, std::size_t> number;
  for (std::size_t i = 0; i < table.size(); ++i) number[table[i]] = i;
  std::string streams[3], high;
  std::string_view before;
  for (const IndexedName& name : names) {
    const auto differ = std::ranges::mismatch(before, std::string_view(name.name));
    const auto shared = std::min<std::size_t>(static_cast<std::size_t>(differ.in1 - before.begin()), 255);
    put(streams[0], shared, 1);
    streams[1].append(name.name, shared).push_back('\0');
    const std::size_t set = number[{name.set.exact, name.set.twin}];
    put(streams[2], set & 0xff, 1);
    put(high, set >> 8, 1);
    before = name.name;
  }
  streams[2] += high;
  std::string out(kSymbolIndexMagic);
  for (const std::size_t count : {releases.size(), names.size(), table.size()}) put(out, count, 4);
  std::string packed[3];
  for (int i = 0; i < 3; ++i) put(out, streams[i].size(), 4);
  for (int i = 0; i < 3; ++i) packed[i] = deflate(streams[i]);
  for (int i = 0; i < 3; ++i) put(out, packed[i].size(), 4);
  for (const IndexedRelease& release : releases) {
    put_text(out, release.minor);
    put(out, release.new_strings ? 1 : 0, 1);
    put(out, release.pybind_internals, 1);
    put_text(out, release.python_tags);
  }
  for (const SetKey& set : table) {
    put(out, set.first, 8);
    put(out, set.second, 8);
  }
  return out + packed[0] + packed[1] + packed[2];
}

}  // namespace scankit::torch_abi
