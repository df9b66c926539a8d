// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/launch_parts.h"

namespace scankit::selective_scan {

// The table of all kernels, by unit and symbol (entry.cuh), in the order that the functions below count
// on: the forward's variants, the backward's, the general kernels, each for every DType in its order;
// then what a constant B or C and packed sequences have of their own, the ends, the single step for every DType, and the
// reduction. Those behind the general kernels are found from the end, whatever the number of variants;
// one that is added there changes their numbers.
#define GENERAL_KERNEL(name)                                                          \
  {"general_f32", "scankit_general_" name}, {"general_f16", "scankit_general_" name}, \
      {"general_bf16", "scankit_general_" name},
#define CONSTANT_KERNEL(name)                                                             \
  {"constant_f32", "scankit_constant_" name}, {"constant_f16", "scankit_constant_" name}, \
      {"constant_bf16", "scankit_constant_" name},
#define PACKED_KERNEL(name)                                                       \
  {"packed_f32", "scankit_packed_" name}, {"packed_f16", "scankit_packed_" name}, \
      {"packed_bf16", "scankit_packed_" name},
// The parts of variants.def are units of their own for 16-bit types, and one for fp32 (units.def).
#define PART_main ""
#define PART_rest "rest_"
#define PART_few "few_"
#define PART_many "many_"
#define FORWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, options, \
                        part)                                                                                \
  {"forward_f32", "scankit_forward_" #name}, {"forward_" PART_##part "f16", "scankit_forward_" #name},       \
      {"forward_" PART_##part "bf16", "scankit_forward_" #name},
#define BACKWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone,       \
                         options, part)                                                                    \
  {"backward_f32", "scankit_backward_" #name}, {"backward_" PART_##part "f16", "scankit_backward_" #name}, \
      {"backward_" PART_##part "bf16", "scankit_backward_" #name},
const device::KernelName kCudaKernels[] = {
#include "kernels/selective_scan/cuda/variants.def"
    GENERAL_KERNEL("forward_real") GENERAL_KERNEL("forward_complex") GENERAL_KERNEL("backward_real")
        GENERAL_KERNEL("backward_complex") CONSTANT_KERNEL("forward") CONSTANT_KERNEL("backward")
            CONSTANT_KERNEL("forward_ends") CONSTANT_KERNEL("backward_ends") PACKED_KERNEL("forward")
                PACKED_KERNEL("backward"){"forward_f32", "scankit_forward_ends"},
    {"forward_f16", "scankit_forward_ends"},
    {"forward_bf16", "scankit_forward_ends"},
    {"backward_f32", "scankit_backward_ends"},
    {"backward_f16", "scankit_backward_ends"},
    {"backward_bf16", "scankit_backward_ends"},
    {"update", "scankit_update_f32"},
    {"update", "scankit_update_f16"},
    {"update", "scankit_update_bf16"},
    {"reduce", "scankit_reduce"},
};
const int kCudaKernelCount = sizeof kCudaKernels / sizeof *kCudaKernels;

int forward_kernel_index(int variant, DType dtype) { return variant * 3 + static_cast<int>(dtype); }
int backward_kernel_index(int variant, DType dtype) {
  return (kForwardVariantCount + variant) * 3 + static_cast<int>(dtype);
}
int general_kernel_index(bool backward, const Common& c) {
  const int kernel = (backward ? 2 : 0) + (c.complex ? 1 : 0);
  return (kForwardVariantCount + kBackwardVariantCount + kernel) * 3 + static_cast<int>(c.dtype);
}
int constant_kernel_index(bool backward, bool ends, DType dtype) {
  const int kernel = (ends ? 2 : 0) + (backward ? 1 : 0);
  return kCudaKernelCount - 28 + kernel * 3 + static_cast<int>(dtype);
}
int packed_kernel_index(bool backward, DType dtype) {
  return kCudaKernelCount - 16 + (backward ? 3 : 0) + static_cast<int>(dtype);
}
int ends_kernel_index(bool backward, DType dtype) {
  return kCudaKernelCount - 10 + (backward ? 3 : 0) + static_cast<int>(dtype);
}
int reduce_kernel_index() { return kCudaKernelCount - 1; }
int update_kernel_index(DType dtype) { return kCudaKernelCount - 4 + static_cast<int>(dtype); }

}  // namespace scankit::selective_scan
