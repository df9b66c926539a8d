// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/tile.cuh"

// B and C of a tile: from global to shared memory, of one slice of states or slice after slice, and where the
// backward puts the sums of their gradients.
namespace scankit::selective_scan {

// B and C of a tile and of one slice of states, as fp32 in shared memory: kSlice rows of B, then kSlice
// of C. State kPer * lane + s is row s * kLanes + lane, so the lanes of a channel, which read their
// s-th states at once, read neighbouring rows, and kPitch puts those into different banks. The threads
// of a block share the work: a piece is eight steps of one state, and kCount pieces are dealt out by
// thread number, B's before C's.
template <class T, class L, bool kConstant = false>
struct Projections {
  static constexpr int kCount = 2 * L::kSlice * 4;  // pieces of eight steps

  // A constant B or C (constant.cuh) has no pieces, and its rows in shared memory are not touched.
  // Asked of the descriptors, which are kernel arguments: the same answer in all threads of a launch.
  SCANKIT_DEVICE static bool is_constant(const Common& c, int piece) {
    if constexpr (kConstant) return (piece < kCount / 2 ? c.constant_B : c.constant_C).data != nullptr;
    return false;
  }

  // Where a piece is in global memory at step 0 of its tile's row, and how many elements its row has from
  // there on (0 for a state that does not exist).
  SCANKIT_DEVICE static const char* place_of(const Common& c, const Place& place, int piece, int slice) {
    const int state = slice * L::kSlice + piece / 4 % L::kSlice;
    const Projection& from = piece < kCount / 2 ? c.B : c.C;
    const Index offset = place.batch * from.batch_stride + place.group * from.group_stride +
                         state * from.state_stride + piece % 4 * 8;
    return static_cast<const char*>(from.data) + offset * T::kSize;
  }
  SCANKIT_DEVICE static int count_of(const Common& c, int piece, int slice) {
    return slice * L::kSlice + piece / 4 % L::kSlice < c.states ? c.length - piece % 4 * 8 : 0;
  }
  // The piece's first float in shared memory.
  SCANKIT_DEVICE static int at(int piece) {
    const int state = piece / 4 % L::kSlice;
    const int row = state % L::kPer * L::kLanes + state / L::kPer + piece / (kCount / 2) * L::kSlice;
    return row * kPitch + piece % 4 * 8;
  }
  SCANKIT_DEVICE static void store(float* shared, int piece, const Eight<T>& e) {
    float v[8];
    T::unpack(e.w, v);
    write_eight(shared + at(piece), v);
  }
  // The Async kernels keep a tile's pieces as they are in global memory: 16 bytes each at `raw`, asked for
  // while the tile after it is computed; 16-bit types and slice 0 only. Behind them is a table of each
  // piece's address at step 0, null where its state does not exist. A thread asks for, and later unpacks,
  // the same pieces, so its own wait_for_copies is enough.
  SCANKIT_DEVICE static const char*& address(float* raw, int piece) {
    return reinterpret_cast<const char**>(raw + kCount * 4)[piece];
  }
  // Fills in the table, once a kernel. A thread writes the entries that it will read itself, so no barrier
  // follows.
  SCANKIT_DEVICE static void find(float* raw, const Common& c, const Place& place) {
    for (int piece = threadIdx.x; piece < kCount; piece += blockDim.x)
      address(raw, piece) = piece / 4 % L::kSlice < c.states ? place_of(c, place, piece, 0) : nullptr;
  }
  // Asks for a tile's pieces; the caller commits. `aligned`: rows start at 16-byte places and have whole
  // pieces, else at 8-byte places with whole halves.
  SCANKIT_DEVICE static void ask(float* raw, const Common& c, int step, bool aligned) {
    for (int piece = threadIdx.x; piece < kCount; piece += blockDim.x) {
      if (is_constant(c, piece)) continue;
      const char *at = address(raw, piece), *from = at + step * Index{T::kSize};
      const int count = at != nullptr ? c.length - step - piece % 4 * 8 : 0;
      if (aligned)
        copy_16_bytes(raw + piece * 4, from, count > 0);
      else
        copy_halves(raw + piece * 4, from, count);
    }
  }
  // The raw pieces to fp32 rows, by the thread that asked for them. Behind it the caller has a barrier:
  // other threads read the rows.
  SCANKIT_DEVICE static void stage_raw(float* shared, const float* raw, const Common& c) {
    for (int piece = threadIdx.x; piece < kCount; piece += blockDim.x) {
      if (is_constant(c, piece)) continue;
      const uint4 v = *reinterpret_cast<const uint4*>(raw + piece * 4);
      store(shared, piece, Eight<T>{{v.x, v.y, v.z, v.w}});
    }
  }
  // All at once: loads a tile's pieces and stores them. The caller needs a barrier before (the rows are
  // still being read) and behind it.
  SCANKIT_DEVICE static void stage(float* shared, const Common& c, const Place& place, int slice, int step,
                                   bool aligned) {
    for (int piece = threadIdx.x; piece < kCount; piece += blockDim.x) {
      if (is_constant(c, piece)) continue;
      Eight<T> e;
      const char* from = place_of(c, place, piece, slice) + step * Index{T::kSize};
      const int count = count_of(c, piece, slice) - step;
      if (aligned)
        load_piece<true>(e, from, count);
      else
        load_piece<false>(e, from, count);
      store(shared, piece, e);
    }
  }
};

// B and C for the forward of more states than a slice has. The sequence of stages is: every slice of a
// tile, then every slice of the next tile. One stage is in shared memory, and the one after it is on
// its way to registers: load() asks for it before the scan of the current one, store() puts it into
// the other buffer behind that.
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

// dB (`which` 0) or dC (1) of a state at four steps, summed over the block's channels: to the block's
// slab, fp32 [tile][dB, dC][batch][group][state][pitch], or straight to the gradient if there is one
// slab only (`direct`). The slab's rows are padded to whole tiles, so the quad always fits; the
// gradient's rows end at `length`.
// kPacked: the slab has one batch entry, and the row of the next sequence begins where this one's ends.
template <class T, bool kPacked = false>
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
  if constexpr (kPacked) {
    const Index own = Index{place.group} * c.states + state, all = Index{c.groups} * c.states * p.pitch;
    float* to = slab + (2 * place.tile + which) * all + own * p.pitch + step;
    if (!p.aligned)
      put_quad(to, sum, c.length - step);
    else if (step < c.length)
      *reinterpret_cast<float4*>(to) = sum;
    return;
  }
  const Index half = Index{c.batch} * c.groups * c.states * p.pitch;  // floats of dB's slab; dC's is behind
  *reinterpret_cast<float4*>(slab + (2 * place.tile + which) * half + row * p.pitch + step) = sum;
}

}  // namespace scankit::selective_scan
