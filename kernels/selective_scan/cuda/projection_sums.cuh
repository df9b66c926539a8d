// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/tile.cuh"

// Where the backward puts what a block has summed up of dB and dC.
namespace scankit::selective_scan {

// dB (`which` 0) or dC (1) of a state at four steps, summed over the block's channels: to the block's
// slab, fp32 [tile][dB, dC][batch][group][state][pitch], or straight to the gradient if there is one
// slab only (`direct`). The slab's rows are padded to whole tiles, so the quad always fits; the
// gradient's rows end at `length`.
template <class T>
SCANKIT_DEVICE void put_projection(const BackwardArguments& p, const Place& place, int which, int state,
                                   int step, float4 sum) {
  const Common& c = p.backward.common;
  const Index row = (Index{place.batch} * c.groups + place.group) * c.states + state;
  if (p.direct) {
    const Index at = row * c.length + step, left = c.length - step;
    const Backward& g = p.backward;
    if constexpr (T::kSize == 4)
      put_quad((which == 0 ? g.dB : g.dC) + at, sum, left);
    else
      put_pairs<T>(static_cast<unsigned short*>(which == 0 ? g.rounded_dB : g.rounded_dC) + at, sum, left);
    return;
  }
  float* slab = reinterpret_cast<float*>(static_cast<char*>(p.workspace) + p.projections);
  const Index half = Index{c.batch} * c.groups * c.states * p.pitch;  // floats of dB's slab; dC's is behind
  *reinterpret_cast<float4*>(slab + (2 * place.tile + which) * half + row * p.pitch + step) = sum;
}

}  // namespace scankit::selective_scan
