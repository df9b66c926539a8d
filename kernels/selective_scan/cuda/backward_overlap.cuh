// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward_tile.cuh"

// The first pass over a tile beside the second one over the tile after it, in one loop over the quads: the
// states before a tile are saved, so nothing of the one waits for the other, and while one waits for
// shuffles and shared memory the exponentials of the other run.
namespace scankit::selective_scan {

// Takes the quads of the tile before from first to last while the reverse pass takes its own from last to
// first. The states before a quad go where the reverse pass has just read its own: the order of the places
// turns from tile to tile.
template <class L, class M>
struct ReplayBeside {
  M memory;  // of the tile before, as are the other members
  const float (&A)[L::kChannels][L::kPer];
  float (&h)[L::kChannels][L::kPer];
  bool turned;  // place i is quad 7 - i of the tile that is reversed, and quad i of the tile before
  int lane;
  float *row, *b_row;
  int own;
  float dt[L::kChannels][4], w[L::kChannels][4];

  SCANKIT_DEVICE ReplayBeside(M memory, float* projections, const float (&A)[L::kChannels][L::kPer],
                              float (&h)[L::kChannels][L::kPer], bool turned, int group, int q, int lane)
      : memory(memory),
        A(A),
        h(h),
        turned(turned),
        lane(lane),
        row(memory.dt + group * kPitch),
        b_row(projections + q * kPitch),
        own(ChannelSum<L>::state(group)) {}

  SCANKIT_DEVICE int place(int quad) const { return turned ? 7 - quad : quad; }
  SCANKIT_DEVICE void begin(int quad) {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      read_quad(row + ch * L::kGroups * kPitch, (7 - quad) * 4, dt[ch]);
      read_quad(row + ch * L::kGroups * kPitch + L::kRows, (7 - quad) * 4, w[ch]);
      memory.keep(place(quad), ch, lane, h[ch]);
    }
    at = (7 - quad) * 4;
  }
  // The last quad's are of no use, but a branch would part the two passes.
  SCANKIT_DEVICE void scan(int s) {
    float b[4];
    read_quad(b_row + (s ^ own) * L::kLanes * kPitch, at, b);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
#pragma unroll
      for (int t = 0; t < 4; ++t)
        h[ch][s] = fmaf(exp2_approx(dt[ch][t] * A[ch][s]), h[ch][s], w[ch][t] * b[t]);
    }
  }

 private:
  int at = 0;  // step
};

}  // namespace scankit::selective_scan
