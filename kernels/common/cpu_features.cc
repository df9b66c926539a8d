// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cpu_features.h"

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>

namespace scankit {
namespace {

// Register state that the system saves: a processor may have AVX under a system that does not.
unsigned enabled_state() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// By Intel's rules for detecting AVX: the CPU must have the instructions, and the system must save the
// registers (OSXSAVE, then XCR0).
CpuLevel find_cpu_level() {
  constexpr unsigned kAvxState = 0x6,
                     kAvx512State = 0xe6;  // XCR0: SSE and AVX; opmask and both upper ZMM parts too
  constexpr unsigned kFirst = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kFirst) != kFirst) return CpuLevel::Portable;
  const unsigned state = enabled_state();
  if ((state & kAvxState) != kAvxState) return CpuLevel::Portable;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return CpuLevel::Portable;
  return (b & kAvx512) == kAvx512 && (state & kAvx512State) == kAvx512State ? CpuLevel::Avx512
                                                                            : CpuLevel::Avx2;
}

}  // namespace

// The result is kept: in a virtual machine each cpuid is a trap, and the five of them take longer than
// a small scan.
CpuLevel cpu_level() {
  static int found = -1;  // atomic; threads that come first together find the same
  int level = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (level < 0) {
    level = static_cast<int>(find_cpu_level());
    __atomic_store_n(&found, level, __ATOMIC_RELAXED);
  }
  return static_cast<CpuLevel>(level);
}

const char* cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::Avx512:
      return "avx512";
    case CpuLevel::Avx2:
      return "avx2";
    case CpuLevel::Portable:
      break;
  }
  return "portable";
}

CpuLevel chosen_cpu_level() {
  const CpuLevel best = cpu_level(), lesser[] = {CpuLevel::Portable, CpuLevel::Avx2};
  const char* wanted = getenv("SCANKIT_CPU_ISA");
  for (const CpuLevel level : lesser)
    if (wanted && level < best && strcmp(wanted, cpu_level_name(level)) == 0) return level;
  return best;
}

}  // namespace scankit
