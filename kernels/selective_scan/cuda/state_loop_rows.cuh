// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward_tile.cuh"
#include "kernels/selective_scan/cuda/odd_rows.cuh"
#include "kernels/selective_scan/cuda/step_lanes.cuh"

// What the backward that loops over the states (state_loop_backward.cuh) reads and writes of a tile: where its
// rows, B, C and states are in global memory, and their copies in shared memory (BackwardMemory<Layout<1, 16,
// ...>>).
namespace scankit::selective_scan {

// Pieces of 16-bit rows that start anywhere: load_eight and store_eight without their vectors, which take
// registers.
template <class T>
SCANKIT_DEVICE void load_any(Eight<T>& e, const char* p, int count) {
  if (count > 8) return load_words(e, p);
  const auto* halves = reinterpret_cast<const unsigned short*>(p);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned low = 2 * i < count ? halves[2 * i] : 0u,
                   high = 2 * i + 1 < count ? halves[2 * i + 1] : 0u;
    e.w[i] = low | high << 16;
  }
}
SCANKIT_DEVICE void store_any(char* p, const unsigned (&w)[4], int count) {
  auto* halves = reinterpret_cast<unsigned short*>(p);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < count) halves[i] = static_cast<unsigned short>(w[i / 2] >> (16 * (i & 1)));
}

template <class T, class L, class M_>
struct StateLoopRows {
  using M = M_;
  // For what is kept by state: of a channel's 16 states a lane reads and writes four.
  using Quarter = Layout<4, 4, L::kChannels>;
  using Staged = Projections<T, Layout<4, 4, 1>>;  // which thread has which piece of B and C
  static constexpr int kTogether = 4;              // states between two exchanges of dB and dC
  static constexpr int kCount = L::kChannels;
  static_assert((T::kSize == 4) == M::kDirect && L::kPer == 16 && L::kGroups == Quarter::kGroups &&
                (kCount == 1 || kCount == 2));

  const BackwardArguments& p;
  const Backward& g;
  const Common& c;
  StepLanes<T, L> lanes;
  float* memory;  // the block's
  float* own;     // the warp's
  int lane;

  SCANKIT_DEVICE StateLoopRows(const BackwardArguments& arguments, float* shared)
      : p(arguments),
        g(p.backward),
        c(g.common),
        lanes(c, p.tiling, M::kTeam),
        memory(shared),
        own(shared + M::kBlock + threadIdx.x / 32 * M::kWarp),
        lane(threadIdx.x % 32) {}

  // Where the lane's pieces of the first tile are, in bytes from the data (as in StepLanesBackward), and the
  // states that the first tile would start from; a channel's four lanes share an entry but for its piece.
  enum Row { kDout, kU, kDelta, kZ, kOut, kDz, kDu, kDdelta, kOutZ, kStates };
  // With M::kVectors there is less room: of a sequence the first channel's is kept.
  SCANKIT_DEVICE Index& row(Row which, int i) const {
    auto* rows = reinterpret_cast<Index*>(own + M::kTable);
    if constexpr (M::kVectors) return rows[which < kStates ? which : which + lanes.group];
    return rows[(which * kCount + i) * 8 + lanes.group];
  }
  template <class S>
  SCANKIT_DEVICE void find_row(const S& of, Row which) const {
    if constexpr (M::kVectors) {
      if (lane == 0) row(which, 0) = lanes.row(of);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) row(which, i) = lanes.row(of) + lanes.further(of, i);
    }
  }
  SCANKIT_DEVICE void find_sequences() const {
    find_row(g.dout, kDout), find_row(c.u, kU), find_row(c.delta, kDelta), find_row(c.z, kZ);
    find_row(g.out, kOut), find_row(g.dz, kDz), find_row(g.du, kDu), find_row(g.ddelta, kDdelta);
    find_row(g.out_z, kOutZ);
  }
  SCANKIT_DEVICE void find_rows() const {
    if (lanes.q == 0) {
      find_sequences();
      const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        row(kStates, i) =
            states_row(x, p.x_odd_rows, lanes.place.batch, lanes.place.channel + lanes.channel(i)) -
            x.chunk_stride;
    }
    for (int piece = threadIdx.x; piece < Staged::kCount; piece += blockDim.x)
      projection(piece) = piece / 4 % 16 < c.states ? Staged::place_of(c, lanes.place, piece, 0) : nullptr;
    __syncwarp();
  }
  // Where a piece of B or C of the first tile is; null for a state that does not exist.
  SCANKIT_DEVICE const char*& projection(int piece) const {
    return reinterpret_cast<const char**>(memory + M::kAddresses)[piece];
  }
  // The lane's piece of a row at `step`, in global memory.
  template <class S>
  SCANKIT_DEVICE auto piece(const S& of, Row which, int i, int step) const {
    if constexpr (M::kVectors)
      return data_of(of) + row(which, i) + (lanes.group * of.dim_stride + (step + lanes.q * 8)) * T::kSize;
    return data_of(of) + row(which, i) + (step + lanes.q * 8) * T::kSize;
  }

  // A lane's 16 bytes of a copied row. u and delta have two places in turn: the epilogue reads them when
  // those of the tile before are already on their way.
  SCANKIT_DEVICE float* raw(Row which, int i, int step) const {
    if constexpr (M::kVectors) {
      if (which == kDelta) return own + M::kOddDelta + lanes.group * OddLayout::kRow + lanes.q * 4;
      const int array = which == kDout ? 0 : which == kZ ? 1 : which == kOut ? 2 : 3;
      return own + M::kRaw + (lanes.group * 4 + array) * OddLayout::kRow + lanes.q * 4;
    }
    const int array = which == kDout ? 0 : which == kZ ? 1 : which == kOut ? 2 : which == kU ? 3 : 4;
    float* at = own + M::kRaw + (array * kCount + i) * 128 + lane * 4;
    return array < 3 ? at : at + (step & kTile) * (2 * kCount * 128 / kTile);
  }
  // With M::kVectors: the lane's piece of u or delta from when the tile begins on.
  SCANKIT_DEVICE float* taken(Row which) const {
    return own + M::kOddPieces + (which == kU ? 0 : 128) + lane * 4;
  }
  // With M::kDirect: one of the two halves of dout as it is in global memory, or of u or delta.
  SCANKIT_DEVICE float* direct(Row which, int i, int half) const {
    const int array = which == kDout ? 0 : which == kU ? 1 : 2;
    return own + M::kRaw + ((array * kCount + i) * 2 + half) * 128 + lane * 4;
  }
  // A lane's four states of a channel before the tile that is asked for.
  SCANKIT_DEVICE float* start(int i) const { return own + M::kStart + i * 128 + lane * 4; }

  // Where rows start: at 16-byte places, at 8-byte ones, or anywhere.
  enum Places { kWhole, kHalves, kAny };

  // Asks for all that the tile at `step` reads. A lane asks for what it reads itself, and a thread for the
  // pieces of B and C that it stages: wait_for_copies alone makes them safe to read. What starts anywhere comes
  // through registers at once, since cp.async needs aligned addresses.
  template <Places kPlaces>
  SCANKIT_DEVICE static void copy(float* to, const char* from, int count) {
    if constexpr (kPlaces == kWhole) {
      copy_16_bytes(to, from, count > 0);
    } else if constexpr (kPlaces == kHalves) {
      copy_halves(to, from, count);
    } else {
      Eight<T> e;
      // Whichever of the two nvcc spills nothing for.
      if constexpr (M::kTeam == 1)
        load_any(e, from, count);
      else
        load_eight(e, from, count);
      *reinterpret_cast<uint4*>(to) = make_uint4(e.w[0], e.w[1], e.w[2], e.w[3]);
    }
  }
  template <Places kPlaces>
  SCANKIT_DEVICE void ask_rows(int step) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int count = lanes.count(i, step);
      copy<kPlaces>(raw(kDout, i, step), piece(g.dout, kDout, i, step), count);
      copy<kPlaces>(raw(kU, i, step), piece(c.u, kU, i, step), count);
      copy<kPlaces>(raw(kDelta, i, step), piece(c.delta, kDelta, i, step), count);
      if (c.z.data == nullptr) continue;
      copy<kPlaces>(raw(kZ, i, step), piece(c.z, kZ, i, step), count);
      copy<kPlaces>(raw(kOut, i, step), piece(g.out, kOut, i, step), count);
    }
  }
  template <Places kPlaces>
  SCANKIT_DEVICE void ask(int step) const {
    ask_rows<kPlaces>(step);
    for (int piece = threadIdx.x; piece < Staged::kCount; piece += blockDim.x) {
      const char* from = projection(piece);
      copy<kPlaces>(raw_projection(piece), from + step * T::kSize,
                    from != nullptr ? c.length - step - piece % 4 * 8 : 0);
    }
    if (step > 0) ask_start(step);
    commit_copies();
  }
  // Asks for the vectors of all that the tile at `step` reads. The lanes of a row read each other's, so that
  // wait_for_copies needs a barrier of the warp behind it, and this one before it.
  SCANKIT_DEVICE void ask_tile(int step) const {
    const int count = lanes.has(0) ? lanes.count(0, step) : -8;
    const auto row = [&](const auto& of, Row which) {
      ask_vectors(raw(which, 0, step), piece(of, which, 0, step), count, lanes.q == 3);
    };
    row(g.dout, kDout), row(c.u, kU), row(c.delta, kDelta);
    if (c.z.data != nullptr) row(c.z, kZ), row(g.out, kOut);
    for (int piece = threadIdx.x; piece < Staged::kCount; piece += blockDim.x) {
      const char* from = projection(piece);
      ask_vectors(raw_projection(piece), from + step * T::kSize,
                  from != nullptr ? c.length - step - piece % 4 * 8 : -8, piece % 4 == 3);
    }
    if (step > 0) ask_start(step);
    commit_copies();
  }
  // Two quads of fp32 that stand apart in shared memory, the second `apart` floats behind the first.
  SCANKIT_DEVICE static void copy_quads(float* to, int apart, const char* from, int count) {
    copy_16_bytes(to, from, count > 0);
    copy_16_bytes(to + apart, from + 16, count > 4);
  }
  // Of fp32 rows of whole quads: dout, which is needed first, B and C come in copies; the others, for which there
  // is no room, to the L2 cache.
  SCANKIT_DEVICE void ask_direct(int step) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int count = lanes.count(i, step);
      copy_quads(direct(kDout, i, 0), 128, piece(g.dout, kDout, i, step), count);
      if (count <= 0) continue;
      prefetch(piece(c.u, kU, i, step)), prefetch(piece(c.delta, kDelta, i, step));
      if (c.z.data != nullptr) prefetch(piece(c.z, kZ, i, step)), prefetch(piece(g.out, kOut, i, step));
    }
    for (int piece = threadIdx.x; piece < Staged::kCount; piece += blockDim.x) {
      const char* from = projection(piece);
      copy_quads(raw_projection(piece), Staged::kCount * 4, from + step * T::kSize,
                 from != nullptr ? c.length - step - piece % 4 * 8 : 0);
    }
    if (step > 0) ask_start(step);
    commit_copies();
  }
  SCANKIT_DEVICE void ask_for(int step) const {
    if constexpr (M::kVectors) {
      ask_tile(step);
    } else if constexpr (M::kDirect) {
      ask_direct(step);
    } else if (p.aligned) {
      ask<kWhole>(step);
    } else {
      ask<kHalves>(step);
    }
  }
  // The states before a tile. They may be at odd places.
  SCANKIT_DEVICE void ask_start(int step) const {
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float* from = x.data + row(kStates, i) + step / kTile * x.chunk_stride + lanes.q * 4;
      const int count = saved_count(i);
      if (count >= 4 && misalignment(from) == 0) {
        copy_16_bytes(start(i), reinterpret_cast<const char*>(from), true);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          copy_4_bytes(start(i) + k, reinterpret_cast<const char*>(from + k), k < count);
      }
    }
  }
  SCANKIT_DEVICE int saved_count(int i) const { return lanes.has(i) ? c.states - lanes.q * 4 : 0; }
  SCANKIT_DEVICE void load_start(float (&h)[kCount][4], int step) const {
    if (step == 0) return load_given<Quarter>(h, c.initial_state, c, lanes.place, lanes.group, lanes.q * 4);
#pragma unroll
    for (int i = 0; i < kCount; ++i) read_quad(start(i), 0, h[i]);
  }

  // As fetch, of fp32; u and delta are kept for fetch_again.
  SCANKIT_DEVICE void fetch_direct(float (&to)[8], Row which, int i, int step) const {
    if (which == kDout) return read_direct(to, which, i);
    const char* from = which == kZ     ? piece(c.z, which, i, step)
                       : which == kU   ? piece(c.u, which, i, step)
                       : which == kOut ? piece(g.out, which, i, step)
                                       : piece(c.delta, which, i, step);
    const int count = lanes.count(i, step);
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float4 low = count > 0 ? *reinterpret_cast<const float4*>(from) : zero;
    const float4 high = count > 4 ? *reinterpret_cast<const float4*>(from + 16) : zero;
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
    if (which != kU && which != kDelta) return;
    quad_at(direct(which, i, 0), 0) = make_float4(to[0], to[1], to[2], to[3]);
    quad_at(direct(which, i, 1), 0) = make_float4(to[4], to[5], to[6], to[7]);
  }
  SCANKIT_DEVICE void read_direct(float (&to)[8], Row which, int i) const {
    float low[4], high[4];
    read_quad(direct(which, i, 0), 0, low);
    read_quad(direct(which, i, 1), 0, high);
#pragma unroll
    for (int t = 0; t < 4; ++t) to[t] = low[t], to[4 + t] = high[t];
  }
  // A copied piece, widened. Only behind wait_for_copies, and only the lane's own: what another thread
  // copied needs a barrier, too (PTX ISA, cp.async: completion is seen by the thread that asked).
  SCANKIT_DEVICE void fetch(float (&to)[8], Row which, int i, int step) const {
    if constexpr (M::kDirect) return fetch_direct(to, which, i, step);
    if constexpr (M::kVectors) {
      const char* from = which == kDout  ? piece(g.dout, which, i, step)
                         : which == kZ   ? piece(c.z, which, i, step)
                         : which == kU   ? piece(c.u, which, i, step)
                         : which == kOut ? piece(g.out, which, i, step)
                                         : piece(c.delta, which, i, step);
      Eight<T> e;
      read_piece(e, raw(which, i, step), misalignment(from));
      if (which == kU || which == kDelta)
        *reinterpret_cast<uint4*>(taken(which)) = make_uint4(e.w[0], e.w[1], e.w[2], e.w[3]);
      return T::unpack(e.w, to);
    }
    if constexpr (!M::kDirect) {
      const uint4 v = *reinterpret_cast<const uint4*>(raw(which, i, step));
      const unsigned w[4] = {v.x, v.y, v.z, v.w};
      T::unpack(w, to);
    }
  }
  // u or delta once more, at the end of the tile.
  SCANKIT_DEVICE void fetch_again(float (&to)[8], Row which, int i, int step) const {
    if constexpr (M::kDirect) return read_direct(to, which, i);
    if constexpr (M::kVectors) {
      const uint4 v = *reinterpret_cast<const uint4*>(taken(which));
      const unsigned w[4] = {v.x, v.y, v.z, v.w};
      return T::unpack(w, to);
    }
    fetch(to, which, i, step);
  }
  // Rounds eight values and writes those that exist, as one 16-byte or two 8-byte stores where the places are
  // known.
  SCANKIT_DEVICE void store(char* to, const float (&v)[8], int i, int step) const {
    const int count = lanes.count(i, step);
    if constexpr (M::kDirect) {
      if (count > 0) *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
      if (count > 4) *reinterpret_cast<float4*>(to + 16) = make_float4(v[4], v[5], v[6], v[7]);
      return;
    } else {
      unsigned w[4];
      T::pack(v, w);
      if constexpr (M::kAnyPlaces) return store_any(to, w, count);
      if constexpr (M::kVectors) return count < 8 ? store_any(to, w, count) : store_words(to, w);
      if (p.aligned) {
        if (count > 0) *reinterpret_cast<uint4*>(to) = make_uint4(w[0], w[1], w[2], w[3]);
        return;
      }
      if (count > 0) *reinterpret_cast<uint2*>(to) = make_uint2(w[0], w[1]);
      if (count > 4) *reinterpret_cast<uint2*>(to + 8) = make_uint2(w[2], w[3]);
    }
  }

  // B and C of a tile, to shared memory as fp32: 32 rows of kPitch floats, B's before C's. The lanes of a
  // channel read 16 bytes each of a row at once: first the first halves of their eight steps, which stand
  // together, then the second ones.
  SCANKIT_DEVICE void stage() const {
    for (int piece = threadIdx.x; piece < M::kTeam * Staged::kCount; piece += blockDim.x) {
      float v[8], *to = memory + piece / 4 * M::kPitch + piece % 4 * 4;
      if constexpr (M::kVectors) {
        Eight<T> e;
        read_piece(e, raw_projection(piece), misalignment(projection(piece)));
        T::unpack(e.w, v);
      } else if constexpr (M::kDirect) {
        float low[4], high[4];
        read_quad(raw_projection(piece), 0, low);
        read_quad(raw_projection(piece) + Staged::kCount * 4, 0, high);
#pragma unroll
        for (int t = 0; t < 4; ++t) v[t] = low[t], v[4 + t] = high[t];
      } else {
        const uint4 e = *reinterpret_cast<const uint4*>(raw_projection(piece));
        const unsigned w[4] = {e.x, e.y, e.z, e.w};
        T::unpack(w, v);
      }
      quad_at(to, 0) = make_float4(v[0], v[1], v[2], v[3]);
      quad_at(to, 16) = make_float4(v[4], v[5], v[6], v[7]);
    }
  }
  // A piece's copy, in the gap behind its row.
  SCANKIT_DEVICE float* raw_projection(int piece) const {
    if constexpr (M::kVectors)
      return memory + M::kOddProjections + piece / 4 * OddLayout::kRow + piece % 4 * 4;
    if constexpr (M::kDirect) return memory + M::kOddProjections + piece * 4;
    return memory + piece / 4 * M::kPitch + 32 + piece % 4 * 4;
  }
};

}  // namespace scankit::selective_scan
