// SPDX-License-Identifier: Apache-2.0
// A small causal_conv1d_cuda, bound by pybind11 as upstream binds it. ARGUMENTS chooses whose releases'
// signature causal_conv1d_fwd has: 7 (1.2 to 1.5.0) or 8 (from 1.5.1 on, which also returns
// nothing).
#include <torch/csrc/utils/pybind.h>

#include <optional>

namespace {
using Tensor = at::Tensor;
using Maybe = std::optional<at::Tensor>;

#if ARGUMENTS == 7
Tensor causal_conv1d_fwd(const Tensor& x, const Tensor&, const Maybe&, const Maybe&, const Maybe&, Maybe,
                         bool) {
  return x;
}
#else
void causal_conv1d_fwd(const Tensor&, const Tensor&, const Maybe&, const Maybe&, const Maybe&, Tensor, Maybe,
                       bool) {}
#endif
Tensor causal_conv1d_update(const Tensor& x, const Tensor&, const Tensor&, const Maybe&, bool, const Maybe&) {
  return x;
}

}  // namespace

PYBIND11_MODULE(causal_conv1d_cuda, m) {
  m.def("causal_conv1d_fwd", &causal_conv1d_fwd, "Causal conv1d forward");
  m.def("causal_conv1d_update", &causal_conv1d_update, "Causal conv1d update");
}
