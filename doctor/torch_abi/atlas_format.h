// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

// The atlas file, all numbers little-endian: magic; u32 releases, names, sets; u32 raw and u32 packed lengths
// of the three streams; per release: short text minor, u8 new strings, u8 pybind internals, short text Python
// tags (u8 length, bytes); per set: u64 exact, u64 twin; then three zstd frames, in name order: prefix
// lengths (u8: characters shared with the name before, at most 255), suffixes (NUL-terminated), set numbers
// (all low bytes, then all high bytes; the commonest set is 0). Names and not their hashes: names that sort
// together share their history, so that their set numbers shrink to a third; hashes would save nothing and
// lose the names.
namespace scankit {

inline constexpr std::string_view kAtlasMagic = "SKATLAS1";
inline constexpr std::uint64_t kAtlasLimit = 64u << 20;  // no number in the header is larger

}  // namespace scankit
