// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/backward.cuh"
#include "kernels/causal_conv1d/cuda/backward_vector.cuh"
#include "kernels/causal_conv1d/cuda/forward.cuh"
#include "kernels/causal_conv1d/cuda/pairs.cuh"
#include "kernels/causal_conv1d/cuda/vector.cuh"

// The kernels of one compile unit (units.def): SCANKIT_DTYPE (F32, F16, BF16) chooses the element type,
// SCANKIT_REDUCE the sum of the slabs. Arguments come by value and are passed on by reference, for which
// __grid_constant__ (compute capability 7.0) spares each thread a copy of them in local memory.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define SCANKIT_PARAMETER(type) const type
#else
#define SCANKIT_PARAMETER(type) const __grid_constant__ type
#endif

// Launch bounds that ask for many blocks a multiprocessor, and so for few registers: only on GPUs of 2048
// threads a multiprocessor, not on those of 1536, nor before sm_80, where the kernels need more registers.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030)
#define SCANKIT_MANY(threads, blocks) (threads, blocks)
#else
#define SCANKIT_MANY(threads, blocks) (threads)
#endif

// SCANKIT_DTYPE to the element type of numeric.cuh; two levels of macros, as arguments of ## are not
// expanded.
#define SCANKIT_TYPE_F32 Float
#define SCANKIT_TYPE_F16 Half
#define SCANKIT_TYPE_BF16 BFloat
#define SCANKIT_PASTE_(a, b) a##b
#define SCANKIT_PASTE(a, b) SCANKIT_PASTE_(a, b)
#define SCANKIT_TYPE SCANKIT_PASTE(SCANKIT_TYPE_, SCANKIT_DTYPE)

// extern "C": the loader finds them by name.
namespace scankit::causal_conv1d {

#ifdef SCANKIT_DTYPE
#define CONV_KERNEL(name, function, Arguments, bounds)                                                      \
  extern "C" __global__ void __launch_bounds__ bounds scankit_conv_##name(SCANKIT_PARAMETER(Arguments) p) { \
    device::let_next_begin();                                                                               \
    function<SCANKIT_TYPE>(p);                                                                              \
  }
#include "kernels/causal_conv1d/cuda/kernels.def"
#endif

#ifdef SCANKIT_REDUCE
extern "C" __global__ void __launch_bounds__(kReduceChannels* kReduceParts)
    scankit_conv_reduce(SCANKIT_PARAMETER(BackwardArguments) p) {
  device::wait_for_last();
  reduce_slabs(p);
}
#endif

}  // namespace scankit::causal_conv1d
