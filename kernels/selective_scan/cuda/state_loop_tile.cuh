// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/state_loop_rows.cuh"

// What the backward that loops over the states keeps of a state from tile to tile, and the sums that leave the
// block.
namespace scankit::selective_scan {

template <class T, class L, class M_>
struct StateLoopTile : StateLoopRows<T, L, M_> {
  using Rows = StateLoopRows<T, L, M_>;
  using Rows::kTogether, Rows::kCount, Rows::saved_count;
  using Rows::p, Rows::g, Rows::c, Rows::lanes, Rows::memory, Rows::own, Rows::lane;
  using typename Rows::M, typename Rows::Quarter;

  SCANKIT_DEVICE StateLoopTile(const BackwardArguments& arguments, float* shared) : Rows(arguments, shared) {}

  // What a lane keeps of a state from tile to tile, 2 kCount floats: the lane's part of dA of each channel,
  // then what enters the lane's own chains: in lane 0 the state before the tile, in lane 3 the gradient
  // behind it, 0 in the others. `slot`: the place of a state in the lane's order, state_at's inverse and the
  // same function.
  SCANKIT_DEVICE float* kept(int slot, int of_lane) const {
    return own + slot * M::kSlot + of_lane * (2 * kCount);
  }
  SCANKIT_DEVICE int state_at(int slot) const { return slot ^ (lanes.group & (kTogether - 1)); }
  SCANKIT_DEVICE float* A_at(int slot) const { return own + M::kA + (slot * 8 + lanes.group) * kCount; }

  // Fills in A and, where lane 0 leaves what goes on to the tile before, `carry`.
  SCANKIT_DEVICE void keep_first(const float (&A)[kCount][4], const float (&carry)[kCount][4]) const {
#pragma unroll
    for (int slot = 0; slot < 16; ++slot) {
#pragma unroll
      for (int i = 0; i < 2 * kCount; ++i) kept(slot, lane)[i] = 0.0f;
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int slot = state_at(lanes.q * 4 + k);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        A_at(slot)[i] = A[i][k];
        kept(slot, lane - lanes.q)[kCount + i] = carry[i][k];
      }
    }
    __syncwarp();
  }
  // Before a tile: hands on the gradient that lane 0 left, and puts in its place the state h.
  SCANKIT_DEVICE void keep_start(const float (&h)[kCount][4]) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int slot = state_at(lanes.q * 4 + k);
      float *first = kept(slot, lane - lanes.q) + kCount, *last = first + 3 * 2 * kCount;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        last[i] = first[i];
        first[i] = h[i][k];
      }
    }
  }

  // Eight steps of B or C as stage() laid them out, and the two or four floats that are kept of a state.
  SCANKIT_DEVICE static void read_halves(const float* from, float (&v)[8]) {
    const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 16);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  }
  SCANKIT_DEVICE static void read_kept(const float* from, float (&dA)[kCount], float (&enters)[kCount]) {
    if constexpr (kCount == 1) {
      const uint2 v = *reinterpret_cast<const uint2*>(from);
      dA[0] = __uint_as_float(v.x), enters[0] = __uint_as_float(v.y);
    } else {
      const float4 v = *reinterpret_cast<const float4*>(from);
      dA[0] = v.x, dA[1] = v.y, enters[0] = v.z, enters[1] = v.w;
    }
  }
  SCANKIT_DEVICE static void write_kept(float* to, const float (&dA)[kCount], const float (&leaves)[kCount]) {
    if constexpr (kCount == 1)
      *reinterpret_cast<uint2*>(to) = make_uint2(__float_as_uint(dA[0]), __float_as_uint(leaves[0]));
    else
      *reinterpret_cast<float4*>(to) = make_float4(dA[0], dA[1], leaves[0], leaves[1]);
  }

  // Sums of dB and dC over the block's warps, in their order. Eight threads in a row have a state's 32
  // steps.
  SCANKIT_DEVICE void put_sums(int step) const {
    const int warps = blockDim.x / 32;
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
      const int value = i / 8, half = i / 4 & 1, q = i & 3;
      if (value % 16 >= c.states) continue;
      const float* from = memory + M::kBlock + M::kPart + value * 32 + (half ^ (value & 1)) * 16 + q * 4;
      float4 sum = *reinterpret_cast<const float4*>(from);
#pragma unroll 4
      for (int warp = 1; warp < warps; ++warp) {
        const float4 part = *reinterpret_cast<const float4*>(from + warp * M::kWarp);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      put_projection<T>(p, lanes.place, value / 16, value % 16, step + q * 8 + half * 4, sum);
    }
  }

  // As in backward.cuh. Slabs: dA, dD and the bias's by [segment][batch].
  SCANKIT_DEVICE float* slab(Index offset) const {
    return reinterpret_cast<float*>(reinterpret_cast<Index>(p.workspace) + offset);
  }
  // A channel's sum over its four lanes; all 32 lanes call it, for the shuffles.
  SCANKIT_DEVICE void put_channel(float v, Index offset, int i) const {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    if (lanes.q != 0 || !lanes.has(i)) return;
    slab(offset)[slab_row() * p.dim_pitch + lanes.place.channel + lanes.channel(i)] = v;
  }
  SCANKIT_DEVICE Index slab_row() const { return Index{segment_index()} * c.batch + lanes.place.batch; }
  // dA of each state from the parts of the channel's lanes, and the gradient that leaves the tile.
  SCANKIT_DEVICE void read_states(float (&dA)[kCount][4], float (&leaves)[kCount][4]) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float* of = kept(state_at(lanes.q * 4 + k), lane - lanes.q);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        dA[i][k] = (of[i] + of[i + 2 * kCount]) + (of[i + 4 * kCount] + of[i + 6 * kCount]);
        leaves[i][k] = of[kCount + i];
      }
    }
  }
  SCANKIT_DEVICE void put_states(bool is_first) const {
    float dA[kCount][4], leaves[kCount][4];
    __syncwarp();
    read_states(dA, leaves);
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      store_states<4>(slab(p.dA) + slab_row() * p.dA_pitch +
                          (lanes.place.channel + lanes.channel(i)) * Index{c.states} + lanes.q * 4,
                      dA[i], saved_count(i));
    if (is_first) store_given<Quarter>(g.dinitial_state, leaves, c, lanes.place, lanes.group, lanes.q * 4);
  }
};

}  // namespace scankit::selective_scan
