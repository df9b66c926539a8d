// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/numeric.cuh"

// The second stage of every sum over blocks: slabs are added in their order, so two runs give the same bits.
namespace scankit::selective_scan {

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
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
  for (Index slab = 0; slab < job.slabs; ++slab) {
    const float4 v = *reinterpret_cast<const float4*>(from + slab * job.slab_stride);
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  float* to = job.out + row * job.length + first;
  const float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i < job.length) to[i] = v[i];
}

}  // namespace scankit::selective_scan
