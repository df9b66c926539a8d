// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which vector instructions processor and system offer, by cpuid and xgetbv: __builtin_cpu_supports needs
// libgcc's
// __cpu_model, which does not link everywhere (zig, -nostdlib).
namespace scankit {

enum class CpuLevel : int {
  Portable = 0,
  Avx2 = 1,
  Avx512 = 2
};  // Avx2: with FMA and F16C; Avx512: F, BW, DQ, VL

CpuLevel cpu_level();

}  // namespace scankit
