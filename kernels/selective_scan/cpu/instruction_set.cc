// SPDX-License-Identifier: Apache-2.0
// The KernelSet of one instruction set: compiled once for each, with its compiler flags, SCANKIT_SET (avx512,
// avx2 or portable) and SCANKIT_LANES, what those flags must have made of a vector.
#include "kernels/selective_scan/cpu/backward_task.h"
#include "kernels/selective_scan/cpu/update_task.h"

namespace scankit::selective_scan {
namespace {

// These functions select the element type at run time; everything below them is a template.
inline void forward_of_any(const Forward& scan, const TaskGrid& grid, int task, float* scratch) {
  switch (scan.common.dtype) {
    case DType::F32:
      return forward_task<float>(scan, grid, task, scratch);
    case DType::F16:
      return forward_task<Half>(scan, grid, task, scratch);
    case DType::BF16:
      return forward_task<BFloat16>(scan, grid, task, scratch);
  }
}
inline void backward_of_any(const Backward& scan, const TaskGrid& grid, const Slabs& slabs, int task,
                            float* scratch) {
  switch (scan.common.dtype) {
    case DType::F32:
      return backward_task<float>(scan, grid, slabs, task, scratch);
    case DType::F16:
      return backward_task<Half>(scan, grid, slabs, task, scratch);
    case DType::BF16:
      return backward_task<BFloat16>(scan, grid, slabs, task, scratch);
  }
}
template <class T>
void update_with_state(const Update& step, const TaskGrid& grid, int task, float* scratch) {
  step.state_dtype == DType::F32 ? update_task<T, float>(step, grid, task, scratch)
                                 : update_task<T, T>(step, grid, task, scratch);
}
inline void update_of_any(const Update& step, const TaskGrid& grid, int task, float* scratch) {
  switch (step.dtype) {
    case DType::F32:
      return update_task<float, float>(step, grid, task, scratch);
    case DType::F16:
      return update_with_state<Half>(step, grid, task, scratch);
    case DType::BF16:
      return update_with_state<BFloat16>(step, grid, task, scratch);
  }
}
inline long forward_floats(int numbers) { return ForwardScratch::floats(numbers); }
inline long backward_floats(int numbers) { return BackwardScratch::floats(numbers); }
inline long update_floats(int states) { return UpdateScratch::floats(states); }

}  // namespace

static_assert(kLanes == SCANKIT_LANES, "compiled with other flags than kernels/CMakeLists.txt gives");

#define SCANKIT_PASTE_(a, b) a##b
#define SCANKIT_PASTE(a, b) SCANKIT_PASTE_(a, b)
#define SCANKIT_TEXT_(a) #a
#define SCANKIT_TEXT(a) SCANKIT_TEXT_(a)
const KernelSet& SCANKIT_PASTE(SCANKIT_SET, _kernels)() {
  static constexpr KernelSet set = {SCANKIT_TEXT(SCANKIT_SET), kLanes,        forward_floats,
                                    backward_floats,           update_floats, forward_of_any,
                                    backward_of_any,           update_of_any};
  return set;
}

}  // namespace scankit::selective_scan
