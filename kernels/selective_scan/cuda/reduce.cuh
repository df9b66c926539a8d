// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/numeric.cuh"

// The second stage of every sum over blocks: slabs are added in their order, so two runs give the same bits.
namespace scankit::selective_scan {

// A row's end is padded to whole quads, and nothing was written there.
SCANKIT_DEVICE float4 load_quad(const float* from, Index left) {
  if (left >= 4) return *reinterpret_cast<const float4*>(from);
  return make_float4(left > 0 ? from[0] : 0.0f, left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f, 0.0f);
}

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
#pragma unroll 4
  for (Index slab = 0; slab < job.slabs; ++slab) {
    const float4 v = load_quad(from + slab * job.slab_stride, left);
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  const Index at_out = row * job.out_pitch + first;
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
