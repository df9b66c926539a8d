// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward.cuh"

// What the kernels for a complex A, constant B and C, and packed sequences share, with or without states
// beside the scan. 16 lanes have a channel, each one state of a slice of 16; a warp has two channels, a
// block eight. Slices are taken one after the other within a tile, as in the sliced kernels for real A. Plain
// before fast: the element-wise work is done by a quarter of the lanes.
namespace scankit::selective_scan {

// A number of the scan: real ones are complex ones whose imaginary part nobody computes.
template <bool kComplex>
struct Number {
  float re, im;
};
template <>
struct Number<false> {
  float re;
};
template <bool kComplex>
SCANKIT_DEVICE Number<kComplex> load_number(const float* from) {
  Number<kComplex> value = {};
  value.re = from[0];
  if constexpr (kComplex) value.im = from[1];
  return value;
}
template <bool kComplex>
SCANKIT_DEVICE void store_number(float* to, const Number<kComplex>& value) {
  to[0] = value.re;
  if constexpr (kComplex) to[1] = value.im;
}

// cos and sin of dt * rate, as the CPU has it (cpu/complex.h says why so).
SCANKIT_DEVICE Number<true> turn(float dt, float rate) {
  const float angle = dt * rate, rounding = fmaf(dt, rate, -angle);
  const float n = rintf(angle * 0.63661977f);
  float r = fmaf(n, -1.5703125f, angle);
  r = fmaf(n, -4.837512969970703125e-4f, r);
  r = fmaf(n, -7.54978995489188216e-8f, r);
  r = fminf(fmaxf(r, -1.0f), 1.0f) + rounding;  // NaN where the angle is infinite
  const float r2 = r * r;
  float sine = fmaf(r2, -1.9515295891e-4f, 8.3321608736e-3f);
  sine = fmaf(r2, sine, -1.6666654611e-1f);
  sine = fmaf(r2 * r, sine, r);
  float cosine = fmaf(r2, 2.443315711809948e-5f, -1.388731625493765e-3f);
  cosine = fmaf(r2, cosine, 4.166664568298827e-2f);
  cosine = fmaf(r2 * r2, cosine, fmaf(r2, -0.5f, 1.0f));
  const float quarter = n - 4.0f * rintf(n * 0.25f);
  const bool odd = fabsf(quarter) == 1.0f;
  const float x = odd ? sine : cosine, y = odd ? cosine : sine;
  return {quarter > 0.5f || quarter < -1.5f ? -x : x, quarter < -0.5f || quarter > 1.5f ? -y : y};
}

// e^(dt A) from A with its real part times log2 e.
template <bool kComplex>
SCANKIT_DEVICE Number<kComplex> decay(float dt, const Number<kComplex>& A) {
  const float size = exp2_approx(dt * A.re);
  if constexpr (kComplex) {
    const Number<true> direction = turn(size == 0.0f ? 0.0f : dt, A.im);
    return {size * direction.re, size * direction.im};
  } else {
    return {size};
  }
}
// a h + w b
template <bool kComplex>
SCANKIT_DEVICE Number<kComplex> advance(const Number<kComplex>& a, const Number<kComplex>& h, float w,
                                        const Number<kComplex>& b) {
  if constexpr (kComplex) {
    return {fmaf(a.re, h.re, fmaf(-a.im, h.im, w * b.re)), fmaf(a.re, h.im, fmaf(a.im, h.re, w * b.im))};
  } else {
    return {fmaf(a.re, h.re, w * b.re)};
  }
}
// a conj(b)
template <bool kComplex>
SCANKIT_DEVICE Number<kComplex> times_conjugate(const Number<kComplex>& a, const Number<kComplex>& b) {
  if constexpr (kComplex) {
    return {fmaf(a.re, b.re, a.im * b.im), fmaf(a.im, b.re, -a.re * b.im)};
  } else {
    return {a.re * b.re};
  }
}
// Re(a conj(b)) + sum
template <bool kComplex>
SCANKIT_DEVICE float inner(const Number<kComplex>& a, const Number<kComplex>& b, float sum) {
  if constexpr (kComplex) sum = fmaf(a.im, b.im, sum);
  return fmaf(a.re, b.re, sum);
}

// As load_eight, for kernels whose registers are few: off 16-byte places element by element.
template <class T>
SCANKIT_DEVICE void load_some(Eight<T>& e, const char* p, int count) {
  if (T::kSize == 4 || (count >= 8 && misalignment(p) == 0)) return load_eight(e, p, count);
  const auto* halves = reinterpret_cast<const unsigned short*>(p);
#pragma unroll
  for (int i = 0; i < T::kWords; ++i) {
    const unsigned low = 2 * i < count ? halves[2 * i] : 0u,
                   high = 2 * i + 1 < count ? halves[2 * i + 1] : 0u;
    e.w[i] = low | high << 16;
  }
}

inline constexpr int kGeneralThreads = kGeneralWarps * 32;

// Shared memory of a block: B and C of a slice's tile (rows of state and part), then the warps' rows, then
// what the direction adds.
template <class T, bool kComplex>
struct General {
  using N = Number<kComplex>;
  static constexpr int kParts = kComplex ? 2 : 1;
  static constexpr int kProjection = kGeneralLanes * kParts * kPitch;  // floats of B or C
  static constexpr int kPieces = 2 * kGeneralLanes * 4 * kParts;       // of eight elements, B's then C's

  const Common& c;
  Place place;
  int entry;        // the sequence's number; place.batch, too, where sequences are not packed
  int begin, end;   // its steps in its row
  int lane, q, ch;  // ch: which of the warp's two channels
  float* projections;

  SCANKIT_DEVICE void find_lane() {
    lane = threadIdx.x % 32;
    q = lane % kGeneralLanes;
    ch = lane / kGeneralLanes;
  }
  // place.batch is the sequence's number. What cu_seqlens holds is not trusted: a caller cannot look at it
  // without waiting for the device.
  SCANKIT_DEVICE void find_steps() {
    entry = place.batch, begin = 0, end = c.length;
    if (c.packed.cu_seqlens == nullptr) return;
    const int first = c.packed.cu_seqlens[entry], behind = c.packed.cu_seqlens[entry + 1];
    begin = first < 0 ? 0 : first < c.length ? first : c.length;
    end = behind < begin ? begin : behind < c.length ? behind : c.length;
    place.batch = 0;
  }
  // Of the saved states.
  SCANKIT_DEVICE int first_chunk() const {
    return c.packed.cu_seqlens == nullptr ? 0 : begin / kTile + entry;
  }
  SCANKIT_DEVICE bool exists(int state) const { return ch < place.channels && state < c.states; }

  // A piece is eight steps of one of the warp's channels; lanes 0 to 7 have one each.
  SCANKIT_DEVICE bool has_piece() const { return lane < 8; }
  SCANKIT_DEVICE int piece_count(int step) const {
    return has_piece() && lane / 4 < place.channels ? end - step - lane % 4 * 8 : 0;
  }
  SCANKIT_DEVICE int piece_at() const { return lane / 4 * kPitch + lane % 4 * 8; }
  template <class Of>
  SCANKIT_DEVICE auto piece_of(const Of& sequence, int step) const {
    return row_of<T>(sequence, place.batch, place.channel + lane / 4) +
           (Index{step} + lane % 4 * 8) * Index{T::kSize};
  }
  SCANKIT_DEVICE void fetch(float (&v)[8], const Sequence& from, int step) const {
    Eight<T> e;
    load_some(e, piece_of(from, step), piece_count(step));
    T::unpack(e.w, v);
  }
  SCANKIT_DEVICE void store(const SequenceOut& to, const float (&v)[8], int step) const {
    store_eight<T>(piece_of(to, step), v, piece_count(step));
  }
  SCANKIT_DEVICE float of_channel(const float* from) const {
    return from != nullptr && has_piece() && lane / 4 < place.channels ? from[place.channel + lane / 4]
                                                                       : 0.0f;
  }

  // The thread's number of a matrix; 0 where it does not exist.
  SCANKIT_DEVICE N number_of(const Matrix& from, int state) const {
    if (!exists(state)) return {};
    return load_number<kComplex>(from.data + (place.channel + ch) * from.dim_stride +
                                 state * from.state_stride);
  }
  SCANKIT_DEVICE N rate_of(int state) const {
    return number_of({c.A, c.A_dim_stride, c.A_state_stride}, state);
  }

  // The thread's number of states beside the scan; 0 where there are none.
  SCANKIT_DEVICE N state_of(const States& from, int state) const {
    if (from.data == nullptr) return {};
    return number_of({from.data + entry * from.batch_stride, from.dim_stride, kParts}, state);
  }
  SCANKIT_DEVICE void store_state(float* to, int state, const N& value) const {
    if (to == nullptr || !exists(state)) return;
    store_number<kComplex>(
        to + ((Index{entry} * c.dim + place.channel + ch) * Index{c.states} + state) * kParts, value);
  }

  // Variable B and C of a slice's tile to shared memory. All threads.
  SCANKIT_DEVICE void stage(int first_state, int step) const {
    for (int piece = threadIdx.x; piece < kPieces; piece += kGeneralThreads) {
      const bool is_C = piece >= kPieces / 2;
      const int own = piece % (kPieces / 2), state = own / (4 * kParts), part = own % (4 * kParts);
      const Matrix& constant = is_C ? c.constant_C : c.constant_B;
      if (constant.data != nullptr) continue;
      const Projection& from = is_C ? c.C : c.B;
      const Index first = Index{step} * kParts + part * 8;
      const Index offset = place.batch * from.batch_stride + place.group * from.group_stride +
                           (first_state + state) * from.state_stride + first;
      const Index left = first_state + state < c.states ? Index{end} * kParts - first : 0;
      Eight<T> e;
      load_some(e, static_cast<const char*>(from.data) + offset * T::kSize,
                static_cast<int>(left < 8 ? left : 8));
      float v[8];
      T::unpack(e.w, v);
      float* row = projections + (is_C ? kProjection : 0) + state * kParts * kPitch;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int at = part * 8 + i;
        row[at % kParts * kPitch + at / kParts] = v[i];
      }
    }
  }
  // B (which 0) or C (which 1) of the thread's state at four steps; C times two where complex.
  SCANKIT_DEVICE void values(N (&v)[4], int which, const Matrix& constant, const N& own, int quad) const {
    if (constant.data != nullptr) {
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = own;
    } else {
      float* row = projections + which * kProjection + q * kParts * kPitch;
      float part[4];
      read_quad(row, quad * 4, part);
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t].re = part[t];
      if constexpr (kComplex) {
        read_quad(row + kPitch, quad * 4, part);
#pragma unroll
        for (int t = 0; t < 4; ++t) v[t].im = part[t];
      }
    }
    if constexpr (kComplex) {
      if (which == 0) return;
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = {2.0f * v[t].re, 2.0f * v[t].im};
    }
  }
};

SCANKIT_DEVICE Index numbers_of_channel(const Common& c) { return Index{c.states} * (c.complex ? 2 : 1); }

SCANKIT_DEVICE SavedStates general_states_of(const Common& c, const SavedStates& given, bool in_workspace,
                                             void* workspace) {
  if (!in_workspace) return given;
  const Index chunks = c.packed.cu_seqlens == nullptr ? tile_count(c.length) + 1
                                                      : c.length / kTile + Index{c.packed.sequences};
  const Index numbers = numbers_of_channel(c), dim_stride = chunks * numbers;
  return {static_cast<float*>(workspace), c.dim * dim_stride, dim_stride, numbers};
}

}  // namespace scankit::selective_scan
