// SPDX-License-Identifier: Apache-2.0
// A small causal_conv1d_cuda, bound by pybind11 as upstream binds it. ARGUMENTS chooses whose releases'
// signatures its functions have: 7 (1.2 to 1.5.0) or 8 (from 1.5.1 on, which write into what they are given
// and return nothing). Counted in the calls of the releases' own Python files.
#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <vector>

namespace {
using Tensor = at::Tensor;
using Maybe = std::optional<at::Tensor>;

#if ARGUMENTS == 7
Tensor causal_conv1d_fwd(const Tensor& x, const Tensor&, const Maybe&, const Maybe&, const Maybe&, Maybe,
                         bool) {
  return x;
}
std::vector<Maybe> causal_conv1d_bwd(const Tensor& x, const Tensor& weight, const Maybe& bias, const Tensor&,
                                     const Maybe&, const Maybe&, const Maybe&, const Maybe&, bool, bool) {
  return {x, weight, bias, std::nullopt};
}
Tensor causal_conv1d_update(const Tensor& x, const Tensor&, const Tensor&, const Maybe&, bool, const Maybe&) {
  return x;
}
#else
void causal_conv1d_fwd(const Tensor&, const Tensor&, const Maybe&, const Maybe&, const Maybe&, Tensor, Maybe,
                       bool) {}
void causal_conv1d_bwd(const Tensor&, const Tensor&, const Maybe&, const Tensor&, const Maybe&, const Maybe&,
                       const Maybe&, Tensor, Tensor, Maybe, Maybe, bool) {}
void causal_conv1d_update(const Tensor&, const Tensor&, const Tensor&, const Maybe&, Tensor, bool,
                          const Maybe&, const Maybe&) {}
#endif

}  // namespace

PYBIND11_MODULE(causal_conv1d_cuda, m) {
  m.def("causal_conv1d_fwd", &causal_conv1d_fwd, "Causal conv1d forward");
  m.def("causal_conv1d_bwd", &causal_conv1d_bwd, "Causal conv1d backward");
  m.def("causal_conv1d_update", &causal_conv1d_update, "Causal conv1d update");
}
