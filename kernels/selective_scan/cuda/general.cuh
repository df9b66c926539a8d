// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward.cuh"

// What the general kernels share: those for a complex A, packed sequences, and constant B and C of
// more than 16 states, each with or without states beside the scan. For a complex A the recurrence is
// the same in complex numbers,
//   h_n = exp(dt A_n) h_n + dt u B_n;  y = 2 Re(sum over n of C_n h_n) + D u
// and a gradient is d/d real part + i d/d imaginary part, so that products in the adjoint are
// with conjugates.
//
// Eight lanes have a channel, each two states of a slice of 16 (the second is eight after the first, so
// that the lanes read neighbouring rows of B and C); a warp has four channels, a block 16. Slices are
// taken one after the other within a tile, as in the sliced kernels for a real A. The element-wise work is
// done by half of the lanes: 16 pieces of eight steps. One text serves real and complex numbers, kComplex
// says which; kParts is how many floats a number has.
namespace scankit::selective_scan {

// A number of the scan. A real one has no imaginary part that anybody would compute.
template <bool kComplex>
struct Number {
  float re, im;
};
template <>
struct Number<false> {
  float re;
};
// In memory the two parts are neighbours, as torch's complex64 has them.
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

// A for the decay. size: its real part times log2 e. Where complex, its imaginary part in half turns a
// unit of dt, split in two: turns + rest is Im(A) / pi to about twice fp32's digits. most: the largest dt
// whose angle still has a fraction in fp32 (4e6 half turns, just under 2^22).
template <bool kComplex>
struct Rate {
  float size, turns, rest, most;
};
template <>
struct Rate<false> {
  float size;
};
// kHigh + kLow is 1 / pi; an fma recovers what the product with kHigh rounds off.
template <bool kComplex>
SCANKIT_DEVICE Rate<kComplex> make_rate(const Number<kComplex>& A) {
  Rate<kComplex> rate = {};
  rate.size = A.re * kLog2E;
  if constexpr (kComplex) {
    constexpr float kHigh = 0.31830987334251404f, kLow = 1.2841276486e-8f;  // 1 / pi
    rate.turns = A.im * kHigh;
    rate.rest = fmaf(A.im, kLow, fmaf(A.im, kHigh, -rate.turns));
    const float most = 4.0e6f * rcp_approx(fabsf(rate.turns));
    rate.most = most < 3.0e38f ? most : 3.0e38f;
  }
  return rate;
}

// e^(dt A) = 2^(dt size) (cos + i sin)(pi (k + r)), with k whole and |r| <= 1/2. Adding kRound rounds
// the angle in half turns to k, whose lowest bit is then the sum's: a sign, and no choice between sine
// and cosine. The products with 1 / pi in two parts leave r exact to its last place. The polynomials
// are minimax on [-1/2, 1/2], relative for the sine: 2e-8 for it and 3e-10 for the cosine or, for
// 16-bit types, 6e-8. Errors count here, as those of a decay near 1 add up over thousands of steps.
// Beyond `most` the angle means nothing, but stays finite: where nothing is left of the size the
// product is zero and not NaN.
template <bool kComplex, bool kExact>
SCANKIT_DEVICE Number<kComplex> decay(float dt, const Rate<kComplex>& rate) {
  const float size = exp2_approx(dt * rate.size);
  if constexpr (kComplex) {
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: added, the sum's last place is one
    const float bounded = fminf(dt, rate.most), near = fmaf(bounded, rate.turns, kRound);
    const float r = fmaf(bounded, rate.rest, fmaf(bounded, rate.turns, kRound - near)), r2 = r * r;
    float sine = fmaf(r2, 0.077761404f, -0.59835011f);
    sine = fmaf(r2, sine, 2.5500886f);
    sine = fmaf(r2, sine, -5.1677108f);
    sine =
        kExact ? fmaf(r, 3.14159274f, r * fmaf(r2, sine, -8.7422777e-8f)) : r * fmaf(r2, sine, 3.14159274f);
    float cosine = kExact ? fmaf(r2, fmaf(r2, -0.024417991f, 0.23495244f), -1.3352158f)
                          : fmaf(r2, 0.22005107f, -1.3320814f);
    cosine = fmaf(r2, cosine, kExact ? 4.0587096f : 4.0584498f);
    cosine = fmaf(r2, cosine, kExact ? -4.9348022f : -4.9347955f);
    cosine = fmaf(r2, cosine, 1.0f);
    const float signed_size = __uint_as_float(__float_as_uint(near) << 31 ^ __float_as_uint(size));
    return {signed_size * cosine, signed_size * sine};
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

// As load_eight, for kernels whose registers are few: 16-bit elements off 16-byte places come one by one.
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

// Threads of a block of every general kernel: fixed, so that shared memory is counted the same on host and
// device.
inline constexpr int kGeneralThreads = kGeneralWarps * 32;

// What a thread knows of its place, and the loads and stores of both directions. T: the type of u and all
// rows. Shared memory of a block: B and C of a slice's tile, [B, C][part][state][kPitch], then the warps'
// rows, then what the direction adds.
template <class T, bool kComplex>
struct General {
  using N = Number<kComplex>;
  static constexpr int kParts = kComplex ? 2 : 1;
  static constexpr int kProjection = kGeneralSlice * kParts * kPitch;  // floats of B or C: [part][state]
  static constexpr int kPieces = 2 * kGeneralSlice * 4 * kParts;       // of eight elements, B's then C's

  const Common& c;
  Place place;
  int entry;        // the sequence's number; place.batch, too, where sequences are not packed
  int begin, end;   // its steps in its row
  int lane, q, ch;  // ch: which of the warp's four channels
  float* projections;

  // lane, and what follows from it; the backward has the latter found again (find_again).
  SCANKIT_DEVICE void find_lane() {
    lane = threadIdx.x % 32;
    place_lane();
  }
  SCANKIT_DEVICE void place_lane() {
    q = lane % kGeneralLanes;
    ch = lane / kGeneralLanes;
  }
  // Of packed sequences a block has one: find_place's batch is then the sequence's number, and everything
  // is in row 0. What cu_seqlens contains is not trusted, since a caller cannot look at it without waiting
  // for the device: the steps are held within the row, whatever it says.
  SCANKIT_DEVICE void find_steps() {
    entry = place.batch, begin = 0, end = c.length;
    if (c.packed.cu_seqlens == nullptr) return;
    const int first = c.packed.cu_seqlens[entry], behind = c.packed.cu_seqlens[entry + 1];
    begin = first < 0 ? 0 : first < c.length ? first : c.length;
    end = behind < begin ? begin : behind < c.length ? behind : c.length;
    place.batch = 0;
  }
  // The sequence's first saved state. Each sequence may end in a chunk that is not full, hence +
  // entry (SavedStates in params.h).
  SCANKIT_DEVICE int first_chunk() const {
    return c.packed.cu_seqlens == nullptr ? 0 : begin / kTile + entry;
  }
  // The thread's state s of a slice. Odd channels have their two in the other order, which
  // is ChannelSum's.
  SCANKIT_DEVICE int own_state(int s) const { return q + kGeneralLanes * (s ^ (ch & 1)); }
  SCANKIT_DEVICE bool exists(int state) const { return ch < place.channels && state < c.states; }

  // A piece is eight steps of one of the warp's channels; lanes 0 to 15 have one each.
  SCANKIT_DEVICE bool has_piece() const { return lane < 4 * kGeneralChannels; }
  SCANKIT_DEVICE int piece_count(int step) const {
    return has_piece() && lane / 4 < place.channels ? end - step - lane % 4 * 8 : 0;
  }
  SCANKIT_DEVICE int piece_at() const { return lane / 4 * kPitch + lane % 4 * 8; }
  template <class Of>
  SCANKIT_DEVICE auto piece_of(const Of& sequence, int step) const {
    return row_of<T>(sequence, place.batch, place.channel + lane / 4) +
           (Index{step} + lane % 4 * 8) * Index{T::kSize};
  }
  // A piece of a row, widened; zeros where it does not exist. Loads are not started ahead as in the plain
  // kernels: a complex number takes twice the registers, which leaves none for that.
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

  // The thread's number of a matrix (dim, states), whose strides count floats; 0 where it does not exist.
  SCANKIT_DEVICE N number_of(const Matrix& from, int state) const {
    if (!exists(state)) return {};
    return load_number<kComplex>(from.data + (place.channel + ch) * from.dim_stride +
                                 state * from.state_stride);
  }
  // A of a state, as it is in memory. make_rate() scales it.
  SCANKIT_DEVICE N rate_of(int state) const {
    return number_of({c.A, c.A_dim_stride, c.A_state_stride}, state);
  }

  // The thread's number of the states beside the scan, (sequences, dim, states); 0 where there are none.
  SCANKIT_DEVICE N state_of(const States& from, int state) const {
    if (from.data == nullptr) return {};
    return number_of({from.data + entry * from.batch_stride, from.dim_stride, kParts}, state);
  }
  // To a contiguous tensor of the same shape; null: not wanted.
  SCANKIT_DEVICE void store_state(float* to, int state, const N& value) const {
    if (to == nullptr || !exists(state)) return;
    store_number<kComplex>(
        to + ((Index{entry} * c.dim + place.channel + ch) * Index{c.states} + state) * kParts, value);
  }

  // Variable B and C of a slice's tile to shared memory. All threads, between two barriers. In
  // memory a complex row alternates real and imaginary parts, so a piece of eight elements is four
  // steps; in shared memory the parts have rows of their own. Steps behind the sequence's end are
  // zeros, not the next sequence's.
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
      float* row = projections + (is_C ? kProjection : 0) + state * kPitch + part * (8 / kParts);
      if constexpr (kComplex) {
        quad_at(row, 0) = make_float4(v[0], v[2], v[4], v[6]);
        quad_at(row + kGeneralSlice * kPitch, 0) = make_float4(v[1], v[3], v[5], v[7]);
      } else {
        write_eight(row, v);
      }
    }
  }
  // The same for all threads: callers branch on it around barriers.
  SCANKIT_DEVICE bool has_constant() const {
    return c.constant_B.data != nullptr || c.constant_C.data != nullptr;
  }
  // B (which 0) or C (which 1) of a state of the slice, 0 to 15, at four steps. kConstant: either may
  // be constant, and `own` is its number; asked once a tile, since at each use the answer costs a move
  // a value.
  template <bool kConstant>
  SCANKIT_DEVICE void values(N (&v)[4], int which, const N& own, int state, int quad) const {
    if (kConstant && (which == 0 ? c.constant_B : c.constant_C).data != nullptr) {
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t] = own;
    } else {
      float* row = projections + which * kProjection + state * kPitch;
      float part[4];
      read_quad(row, quad * 4, part);
#pragma unroll
      for (int t = 0; t < 4; ++t) v[t].re = part[t];
      if constexpr (kComplex) {
        read_quad(row + kGeneralSlice * kPitch, quad * 4, part);
#pragma unroll
        for (int t = 0; t < 4; ++t) v[t].im = part[t];
      }
    }
  }
};

// fp32 numbers of a channel's states, numbers_of of params.h on the device.
SCANKIT_DEVICE Index numbers_of_channel(const Common& c) { return Index{c.states} * (c.complex ? 2 : 1); }

// As states_of in forward_tile.cuh, in numbers of one or two floats. Packed sequences have
// packed_chunks(length, sequences) chunks (params.h).
SCANKIT_DEVICE SavedStates general_states_of(const Common& c, const SavedStates& given, bool in_workspace,
                                             void* workspace) {
  if (!in_workspace) return given;
  const Index chunks = c.packed.cu_seqlens == nullptr ? tile_count(c.length) + 1
                                                      : c.length / kTile + Index{c.packed.sequences};
  const Index numbers = numbers_of_channel(c), dim_stride = chunks * numbers;
  return {static_cast<float*>(workspace), c.dim * dim_stride, dim_stride, numbers};
}

}  // namespace scankit::selective_scan
