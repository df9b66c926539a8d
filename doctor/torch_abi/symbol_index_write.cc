// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include <algorithm>
#include <map>

#include "doctor/torch_abi/symbol_index.h"

// The format is described in symbol_index.h. Runs on the machine of a maintainer only, so it may take its
// time: zstd at its highest level, and no check of its own. The maker parses the result again before it
// writes it.
namespace scankit {
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

}  // namespace scankit
