// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels of one plan that overlap (Launch::follows in driver_plan.h): programmatic dependent launch, from
// compute capability 9.0 on (CUDA programming guide). Where a kernel was launched the ordinary way both are
// without effect; the host launches none so whose image was made for an older GPU and has no waiting in it.
namespace scankit::device {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// The next kernel's blocks may be placed where this one leaves room, once all its blocks have said so or
// are gone.
__device__ __forceinline__ void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
// Until the kernel before is done and what it wrote is seen. Before it nothing may be written that anybody
// else reads, and nothing read that the kernel before writes. Every block must come by, or the kernel after
// this one could begin while the one before is still at work.
__device__ __forceinline__ void wait_for_last() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ __forceinline__ void let_next_begin() {}
__device__ __forceinline__ void wait_for_last() {}
#endif

}  // namespace scankit::device
