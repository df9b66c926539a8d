// SPDX-License-Identifier: Apache-2.0
// The KernelSet of one instruction set: compiled once for each, with its compiler flags, SCANKIT_SET (avx512,
// avx2 or portable) and SCANKIT_LANES, what those flags must have made of a vector.
#include "kernels/causal_conv1d/cpu/backward_task.h"
#include "kernels/causal_conv1d/cpu/forward_task.h"

namespace scankit::causal_conv1d {
namespace {

// Calls the body with the element type T and the width as constants.
template <class T, class Body>
inline void with_width(int width, const Body& body) {
  switch (width) {
    case 2:
      return body.template operator()<T, 2>();
    case 3:
      return body.template operator()<T, 3>();
    default:
      return body.template operator()<T, 4>();
  }
}
template <class Body>
inline void with_types(const Common& c, const Body& body) {
  switch (c.dtype) {
    case DType::F32:
      return with_width<float>(c.width, body);
    case DType::F16:
      return with_width<Half>(c.width, body);
    case DType::BF16:
      return with_width<BFloat16>(c.width, body);
  }
}

inline void forward_of_any(const Forward& conv, const TaskGrid& grid, int task) {
  with_types(conv.common, [&]<class T, int kWidth>() { forward_task<T, kWidth>(conv, grid, task); });
}
inline void backward_of_any(const Backward& conv, const TaskGrid& grid, const Slabs& slabs, int task) {
  with_types(conv.common, [&]<class T, int kWidth>() { backward_task<T, kWidth>(conv, grid, slabs, task); });
}
inline void update_of_any(const Update& conv, const TaskGrid& grid, int task) {
  with_types(conv.common, [&]<class T, int kWidth>() { update_task<T, kWidth>(conv, grid, task); });
}

}  // namespace

static_assert(kLanes == SCANKIT_LANES, "compiled with other flags than kernels/CMakeLists.txt gives");

#define SCANKIT_PASTE_(a, b) a##b
#define SCANKIT_PASTE(a, b) SCANKIT_PASTE_(a, b)
const KernelSet& SCANKIT_PASTE(SCANKIT_SET, _kernels)() {
  static constexpr KernelSet set = {kLanes, forward_of_any, backward_of_any, update_of_any};
  return set;
}

}  // namespace scankit::causal_conv1d
