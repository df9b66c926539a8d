// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

// How often shared memory has to be asked for what a warp's lanes touch with one instruction. It has 32 banks
// of four bytes; in one wavefront each bank gives one word, to all lanes that want it (CUDA C++ Programming
// Guide, "Shared Memory" of compute capability 5.x and all later ones). Eight bytes a lane are taken by
// halves of the warp, sixteen by quarters (the guide has it for 2.x; what Nsight Compute counts as ideal on
// later ones is the same).
namespace scankit::selective_scan {

inline constexpr std::size_t kBanks = 32, kWarp = 32;

struct Wavefronts {
  long least = 0, needed = 0;  // without conflicts, and with them
};

// offsets: of each lane that takes part, in bytes, with its number; bytes: of each, 4, 8 or 16.
struct LaneAccess {
  unsigned lane, offset;
};
inline Wavefronts wavefronts_of(const std::vector<LaneAccess>& accesses, unsigned bytes) {
  const std::size_t lanes = kWarp / std::max(1u, bytes / 4);
  Wavefronts sum;
  for (std::size_t first = 0; first < kWarp; first += lanes) {
    std::set<unsigned> words[kBanks];
    std::size_t most = 0;
    for (const LaneAccess& access : accesses) {
      if (access.lane < first || access.lane >= first + lanes) continue;
      for (unsigned word = access.offset / 4; word <= (access.offset + bytes - 1) / 4; ++word) {
        auto& bank = words[word % kBanks];
        bank.insert(word);
        most = std::max(most, bank.size());
      }
    }
    sum.least += most > 0 ? 1 : 0;
    sum.needed += static_cast<long>(most);
  }
  return sum;
}

}  // namespace scankit::selective_scan
