// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "kernels/selective_scan/cuda/check_case.h"

namespace scankit::selective_scan {

CaseShape random_case(unsigned seed, bool small) {
  std::mt19937 random(seed * 7919u + 17u);
  const auto pick = [&](std::initializer_list<int> of) {
    return of.begin()[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random)];
  };
  const auto coin = [&] { return pick({0, 1}) == 1; };
  CaseShape s = {};
  s.seed = seed;
  s.dtype = static_cast<DType>(seed % 3);
  s.batch = pick({1, 1, 2, 3});
  s.groups = pick({1, 1, 1, 2, 4});
  s.dim = s.groups * (small ? pick({1, 5, 17}) : pick({1, 3, 8, 16, 20, 33, 70, 130}));
  s.length = small ? pick({1, 7, 33, 70})
                   : pick({1, 2, 3, 7, 31, 32, 33, 49, 64, 96, 127, 128, 129, 196, 257, 512, 1000});
  s.states =
      small ? pick({1, 4, 8, 16, 40}) : pick({1, 2, 3, 4, 5, 8, 9, 15, 16, 16, 16, 16, 17, 32, 64, 100, 256});
  while (Index{s.batch} * s.dim * s.length * s.states > 3000000) s.length = s.length / 2 + 1;
  s.softplus = coin(), s.z = coin(), s.D = coin(), s.bias = coin();
  s.pad = pick({0, 0, 0, 1, 5, 8});
  s.shift = pick({0, 0, 0, 1, 3, 4, 8});
  s.channel_major = coin(), s.A_transposed = coin();
  s.wide_x = coin(), s.without_x = pick({0, 0, 1}) == 1, s.out_z = coin();
  s.segments = pick({0, 0, 2, 3, 7});
  s.rounded = coin();
  s.kind = pick({0, 0, 0, 0, 0, 0, 1, 2, 3});
  if ((s.kind & 2) != 0) s.groups = 1;  // as the binding takes a constant B
  return s;
}

CaseShape random_stateful_case(unsigned seed, bool small) {
  CaseShape s = random_case(seed, small);
  std::mt19937 random(seed * 104729u + 5u);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  s.kind = pick(0, 7);
  if ((s.kind & 2) != 0) s.groups = 1;  // as the binding takes a constant B
  s.initial = pick(0, 2) != 0, s.last = pick(0, 2) != 0;
  if (pick(0, 8) == 0) s.length = 0;
  if (pick(0, 1) == 0) {
    if (!s.initial && !s.last) s.last = true;
    return s;
  }
  s.batch = 1;
  const int sequences = pick(1, 6);
  for (int i = 0; i < sequences; ++i) s.cu_seqlens.push_back(pick(0, s.length));  // empty ones, too
  s.cu_seqlens.push_back(s.length);
  s.garbage = pick(0, 7) == 0;
  if (s.garbage) {
    for (int& at : s.cu_seqlens)
      if (pick(0, 1) == 0) at = pick(0, 1) == 0 ? pick(-100, s.length + 100) : static_cast<int>(random());
  } else {
    s.cu_seqlens[0] = 0;
    std::sort(s.cu_seqlens.begin(), s.cu_seqlens.end());
  }
  return s;
}

}  // namespace scankit::selective_scan
