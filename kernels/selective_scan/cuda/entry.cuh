// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward.cuh"
#include "kernels/selective_scan/cuda/forward.cuh"
#include "kernels/selective_scan/cuda/general_backward.cuh"
#include "kernels/selective_scan/cuda/packed.cuh"
#include "kernels/selective_scan/cuda/reduce.cuh"
#include "kernels/selective_scan/cuda/update.cuh"

// The kernels of one compile unit (units.def): SCANKIT_FORWARD, SCANKIT_BACKWARD, SCANKIT_GENERAL (both
// directions of the general kernels), SCANKIT_CONSTANT (both of the plain ones for a constant B or C),
// SCANKIT_PACKED (both for packed sequences), SCANKIT_UPDATE (of every element type) or SCANKIT_REDUCE chooses what, and SCANKIT_DTYPE (F32, F16, BF16)
// the element type. kernel_table.cc lists the same kernels by unit and name for the planner.
//
// A kernel takes its arguments by value, as one structure, and passes them on by reference. __grid_constant__
// lets it: without it, nvcc copies a parameter whose address is taken to each thread's local memory. It needs
// compute capability 7.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define SCANKIT_PARAMETER(type) const type
#else
#define SCANKIT_PARAMETER(type) const __grid_constant__ type
#endif

// SCANKIT_DTYPE is one of the names of DType, so that host and device name a unit alike; here it becomes
// the element type of numeric.cuh. Two levels of macros: arguments of ## are not expanded.
#define SCANKIT_TYPE_F32 Float
#define SCANKIT_TYPE_F16 Half
#define SCANKIT_TYPE_BF16 BFloat
#define SCANKIT_PASTE_(a, b) a##b
#define SCANKIT_PASTE(a, b) SCANKIT_PASTE_(a, b)
#define SCANKIT_TYPE SCANKIT_PASTE(SCANKIT_TYPE_, SCANKIT_DTYPE)

// The kernels of forward and backward are in parts (the last column of variants.def), of which a unit has one or more.
// A test that emulates them has all.
#ifdef SCANKIT_EMULATED
#define SCANKIT_PART_main
#define SCANKIT_PART_rest
#define SCANKIT_PART_few
#define SCANKIT_PART_many
#endif
#define SCANKIT_ALL(...) __VA_ARGS__
#define SCANKIT_NONE(...)
#ifdef SCANKIT_PART_main
#define SCANKIT_OF_main SCANKIT_ALL
#else
#define SCANKIT_OF_main SCANKIT_NONE
#endif
#ifdef SCANKIT_PART_rest
#define SCANKIT_OF_rest SCANKIT_ALL
#else
#define SCANKIT_OF_rest SCANKIT_NONE
#endif
#ifdef SCANKIT_PART_few
#define SCANKIT_OF_few SCANKIT_ALL
#else
#define SCANKIT_OF_few SCANKIT_NONE
#endif
#ifdef SCANKIT_PART_many
#define SCANKIT_OF_many SCANKIT_ALL
#else
#define SCANKIT_OF_many SCANKIT_NONE
#endif

// extern "C": the loader finds them by name. __global__ functions of a namespace keep their C name. The
// second number of __launch_bounds__, blocks a multiprocessor, bounds the registers of a thread; the
// planner counts on it (resident_warps in choice.h).
namespace scankit::selective_scan {

// Each kernel has the launch bounds of its row in variants.def; more threads than the first number fail at
// launch, and no compiler sees it. Arguments take at most kArgumentCapacity bytes (driver_plan.h) of the 4
// KB that a kernel's parameters may.
#ifdef SCANKIT_FORWARD
#define FORWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, options, \
                        part)                                                                                \
  SCANKIT_OF_##part(extern "C" __global__ void __launch_bounds__(                                            \
      threads, SCANKIT_TYPE::kSize == 4 && blocks32 ? blocks32 : blocks)                                     \
                        scankit_forward_##name(SCANKIT_PARAMETER(ForwardArguments) p) {                      \
                          using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                     \
                          forward_kernel<SCANKIT_TYPE, Layout<lanes, per, channels>, sliced, Options>(p);    \
                        })
#define BACKWARD_VARIANT(...)
#include "kernels/selective_scan/cuda/variants.def"
#ifdef SCANKIT_PART_main
// 5: kEndsResident of choice.cc.
extern "C" __global__ void __launch_bounds__(kEndsWarps * 32, 5)
    scankit_forward_ends(SCANKIT_PARAMETER(EndsArguments) p) {
  device::let_next_begin();
  ends_kernel<SCANKIT_TYPE, false>(p);
}
#endif
#endif

#ifdef SCANKIT_BACKWARD
// Where its blocks are 0, the planner never takes a kernel for the type; the unit has it all the same, empty.
// The tests on the CPU run it.
template <int kBlocks, class L, bool kSliced, class O>
SCANKIT_DEVICE void backward_if_taken(const BackwardArguments& p) {
  if constexpr (kBlocks > 0) backward_kernel<SCANKIT_TYPE, L, kSliced, O>(p);
}
#ifdef SCANKIT_EMULATED
#define SCANKIT_BLOCKS(blocks, blocks32) 1
#else
#define SCANKIT_BLOCKS(blocks, blocks32) SCANKIT_TYPE::kSize == 4 ? blocks32 : blocks
#endif
#define FORWARD_VARIANT(...)
#define BACKWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone,       \
                         options, part)                                                                    \
  SCANKIT_OF_##part(extern "C" __global__ void __launch_bounds__(                                          \
      threads, SCANKIT_TYPE::kSize == 4 && blocks32                                                        \
                   ? blocks32                                                                              \
                   : blocks + !blocks) scankit_backward_##name(SCANKIT_PARAMETER(BackwardArguments) p) {   \
    device::let_next_begin();                                                                              \
    using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                                         \
    backward_if_taken<SCANKIT_BLOCKS(blocks, blocks32), Layout<lanes, per, channels>, sliced, Options>(p); \
  })
#include "kernels/selective_scan/cuda/variants.def"
#ifdef SCANKIT_PART_main
extern "C" __global__ void __launch_bounds__(kEndsWarps * 32, 5)
    scankit_backward_ends(SCANKIT_PARAMETER(EndsArguments) p) {
  device::let_next_begin();
  ends_kernel<SCANKIT_TYPE, true>(p);
}
#endif
#endif

#ifdef SCANKIT_CONSTANT
#define CONSTANT_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)       \
  extern "C" __global__ void __launch_bounds__(threads, SCANKIT_TYPE::kSize == 4 ? blocks32 : blocks) \
      scankit_constant_forward(SCANKIT_PARAMETER(ForwardArguments) p) {                               \
    using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                                    \
    forward_kernel<SCANKIT_TYPE, Layout<lanes, per, channels>, false, Options>(p);                    \
  }
#define CONSTANT_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)      \
  extern "C" __global__ void __launch_bounds__(threads, SCANKIT_TYPE::kSize == 4 ? blocks32 : blocks) \
      scankit_constant_backward(SCANKIT_PARAMETER(BackwardArguments) p) {                             \
    using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                                    \
    device::let_next_begin();                                                                         \
    backward_kernel<SCANKIT_TYPE, Layout<lanes, per, channels>, false, Options>(p);                   \
  }
#include "kernels/selective_scan/cuda/variants.def"
extern "C" __global__ void __launch_bounds__(kEndsWarps * 32, 5)
    scankit_constant_forward_ends(SCANKIT_PARAMETER(EndsArguments) p) {
  device::let_next_begin();
  ends_kernel<SCANKIT_TYPE, false, true>(p);
}
extern "C" __global__ void __launch_bounds__(kEndsWarps * 32, 5)
    scankit_constant_backward_ends(SCANKIT_PARAMETER(EndsArguments) p) {
  device::let_next_begin();
  ends_kernel<SCANKIT_TYPE, true, true>(p);
}
#endif

#ifdef SCANKIT_PACKED
#define PACKED_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)         \
  extern "C" __global__ void __launch_bounds__(threads, SCANKIT_TYPE::kSize == 4 ? blocks32 : blocks) \
      scankit_packed_forward(SCANKIT_PARAMETER(ForwardArguments) p) {                                 \
    using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                                    \
    packed_forward<SCANKIT_TYPE, Layout<lanes, per, channels>, Options>(p);                           \
  }
#define PACKED_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)        \
  extern "C" __global__ void __launch_bounds__(threads, SCANKIT_TYPE::kSize == 4 ? blocks32 : blocks) \
      scankit_packed_backward(SCANKIT_PARAMETER(BackwardArguments) p) {                               \
    using Options = OptionsOf<options, SCANKIT_TYPE::kSize>::Type;                                    \
    device::let_next_begin();                                                                         \
    packed_backward<SCANKIT_TYPE, Layout<lanes, per, channels>, Options>(p);                          \
  }
#include "kernels/selective_scan/cuda/variants.def"
#endif

#ifdef SCANKIT_GENERAL
// 4 blocks a multiprocessor: set_runs in launch_general.cc fills the GPU with as many.
#define SCANKIT_GENERAL_KERNELS(name, complex)                                         \
  extern "C" __global__ void __launch_bounds__(kGeneralThreads, 4)                     \
      scankit_general_forward_##name(SCANKIT_PARAMETER(ForwardArguments) p) {          \
    general_forward<SCANKIT_TYPE, complex>(p);                                         \
  }                                                                                    \
  extern "C" __global__ void __launch_bounds__(kGeneralThreads, 4)                     \
      scankit_general_backward_##name(SCANKIT_PARAMETER(GeneralBackwardArguments) p) { \
    device::let_next_begin();                                                          \
    general_backward<SCANKIT_TYPE, complex>(p);                                        \
  }
SCANKIT_GENERAL_KERNELS(real, false)
SCANKIT_GENERAL_KERNELS(complex, true)
#endif

#ifdef SCANKIT_UPDATE
#define SCANKIT_UPDATE_KERNEL(name, type)                           \
  extern "C" __global__ void __launch_bounds__(kUpdateThreads)      \
      scankit_update_##name(SCANKIT_PARAMETER(UpdateArguments) p) { \
    update_kernel<type>(p);                                         \
  }
SCANKIT_UPDATE_KERNEL(f32, Float)
SCANKIT_UPDATE_KERNEL(f16, Half)
SCANKIT_UPDATE_KERNEL(bf16, BFloat)
#endif

#ifdef SCANKIT_REDUCE
extern "C" __global__ void __launch_bounds__(kReduceThreads)
    scankit_reduce(SCANKIT_PARAMETER(ReduceArguments) p) {
  device::wait_for_last();
  reduce_kernel(p);
}
#endif

}  // namespace scankit::selective_scan
