// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/tile.cuh"

// B and C for the forward of more states than a slice has. The sequence of stages is: every slice of a
// tile, then every slice of the next tile. One stage is in shared memory, and the one after it is on
// its way to registers: load() asks for it before the scan of the current one, store() puts it into
// the other buffer behind that.
namespace scankit::selective_scan {

template <class T, class L>
struct SliceStages {
  using P = Projections<T, L>;
  // Pieces are carried from load() to store() in registers, kCarried of them a thread, if a block has at
  // least kThreads threads and rows are aligned. Otherwise nothing is carried, and store() reads global
  // memory itself.
  static constexpr int kThreads = L::kSlice > 16 ? 128 : 64;
  static constexpr int kCarried = P::kCount / kThreads;

  const Common& c;
  const Place& place;
  bool ahead;
  Eight<T> pieces[kCarried];

  SCANKIT_DEVICE SliceStages(const Common& common, const Place& of, bool aligned)
      : c(common), place(of), ahead(aligned && static_cast<int>(blockDim.x) >= kThreads) {}

  // As Projections has it, but B or C chosen number by number: of a choice between the two descriptors under
  // a condition nvcc 13's cicc dies for sm_100 and sm_120.
  SCANKIT_DEVICE const char* place_of(int piece, int slice) const {
    const bool second = piece >= P::kCount / 2;
    const int state = slice * L::kSlice + piece / 4 % L::kSlice;
    const Index offset = place.batch * (second ? c.C.batch_stride : c.B.batch_stride) +
                         place.group * (second ? c.C.group_stride : c.B.group_stride) +
                         state * (second ? c.C.state_stride : c.B.state_stride) + piece % 4 * 8;
    return static_cast<const char*>(second ? c.C.data : c.B.data) + offset * T::kSize;
  }
  // Asks for a stage. Pieces behind the row's end or of states that do not exist become zeros, so the last
  // stage may ask for a tile that is not there.
  SCANKIT_DEVICE void load(int slice, int step) {
    if (!ahead) return;
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x;
      if (piece < P::kCount)
        load_whole(pieces[k], place_of(piece, slice) + step * Index{T::kSize},
                   P::count_of(c, piece, slice) > step);
    }
  }
  // Puts the stage that the last load() asked for into shared memory. The slice and step must be the same.
  SCANKIT_DEVICE void store(float* to, int slice, int step) const {
    if (!ahead) return P::stage(to, c, place, slice, step, false);
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x;
      if (piece < P::kCount) P::store(to, piece, pieces[k]);
    }
  }
};

}  // namespace scankit::selective_scan
