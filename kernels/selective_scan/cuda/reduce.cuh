// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/numeric.cuh"

// The second stage of every sum over blocks: dB and dC over channel tiles, dA, dD and the bias gradient
// over batch entries and segments. A thread adds four neighbouring numbers of a row over all slabs, in the
// order of the slabs, so two runs give the same bits; neighbouring threads read neighbouring 16 bytes.
// Several sums (jobs) share a launch: each has a range of blocks.
namespace scankit::selective_scan {

// Slab rows are padded to whole quads (pitch), but the pad has never been written and may be NaN.
SCANKIT_DEVICE float4 load_quad(const float* from, Index left) {
  if (left >= 4) return *reinterpret_cast<const float4*>(from);
  return make_float4(left > 0 ? from[0] : 0.0f, left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f, 0.0f);
}

// A job without an output has no blocks. Zero slabs leave zeros: that is how the gradients of an empty
// problem are written.
// grid.x: the blocks of all jobs, one behind the other; kReduceThreads threads each. Sums in fp32: the
// slabs are fp32 already.
SCANKIT_DEVICE void reduce_kernel(const ReduceArguments& p) {
  int j = 0;
  while (j + 1 < kMaxReduceJobs && blockIdx.x >= p.first_block[j + 1]) ++j;
  const ReduceJob& job = p.jobs[j];
  const Index quads = job.pitch / 4;
  const Index at = (blockIdx.x - p.first_block[j]) * kReduceThreads + threadIdx.x;
  if (at >= job.rows * quads) return;
  const Index row = at / quads, first = at % quads * 4;
  const float* from = reinterpret_cast<const float*>(static_cast<const char*>(p.workspace) + job.source) +
                      row * job.pitch + first;
  const Index left = job.length - first;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  // Four loads are under way at a time; the additions keep their order.
#pragma unroll 4
  for (Index slab = 0; slab < job.slabs; ++slab) {
    const float4 v = load_quad(from + slab * job.slab_stride, left);
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  const Index at_out = row * job.out_pitch + first;
  // Only fp32 sums are added to what is there: dA, dD and the bias gradient from the second round
  // on (kept_states.h).
  if (job.add) {
    const float* there = static_cast<const float*>(job.out) + at_out;
    if (left > 0) sum.x += there[0];
    if (left > 1) sum.y += there[1];
    if (left > 2) sum.z += there[2];
    if (left > 3) sum.w += there[3];
  }
  if (job.type == DType::F32)
    put_quad(static_cast<float*>(job.out) + at_out, sum, left);
  else if (job.type == DType::BF16)
    put_pairs<BFloat>(static_cast<unsigned short*>(job.out) + at_out, sum, left);
#ifndef SCANKIT_EMULATED
  else
    put_pairs<Half>(static_cast<unsigned short*>(job.out) + at_out, sum, left);
#endif
}

}  // namespace scankit::selective_scan
