// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which vector instructions processor and system offer, by cpuid and xgetbv. __builtin_cpu_supports()
// would need libgcc's __cpu_model, which does not link everywhere (zig, -nostdlib).
namespace scankit {

enum class CpuLevel : int {
  Portable = 0,
  Avx2 = 1,
  Avx512 = 2
};  // Avx2: with FMA and F16C; Avx512: F, BW, DQ, VL

CpuLevel cpu_level();
// The same, or the lesser one that the environment variable SCANKIT_CPU_ISA names; read at every call.
CpuLevel chosen_cpu_level();
const char* cpu_level_name(CpuLevel level);  // "avx512", "avx2", "portable"

}  // namespace scankit
