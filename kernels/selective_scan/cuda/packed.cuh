// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward.cuh"
#include "kernels/selective_scan/cuda/forward.cuh"
#include "kernels/selective_scan/cuda/general.cuh"

// Packed sequences of up to 16 states, a real A and a variable B and C, in the plain kernels: a block has one
// sequence, and arguments of its own, in which every row begins with the sequence's first step and ends with its
// last one. `batch` of a Place is then the sequence's number, as initial and last states and the slabs of dA, dD
// and the bias have it; rows of tensors have a batch stride of 0. Of what the plain kernels do otherwise with
// O::kPacked there is little: the last chunk's row of x is not wide, and dB and dC end with the sequence, whose
// neighbour's begin there.
namespace scankit::selective_scan {

// The sequence's steps in row 0, of contents that nobody has looked at (find_steps in general.cuh).
struct Steps {
  int begin, length;
};
SCANKIT_DEVICE Steps steps_of(const Common& c, int sequence) {
  const int first = c.packed.cu_seqlens[sequence], behind = c.packed.cu_seqlens[sequence + 1];
  const int begin = first < 0 ? 0 : first < c.length ? first : c.length;
  const int end = behind < begin ? begin : behind < c.length ? behind : c.length;
  return {begin, end - begin};
}

// Row 0 of a tensor from step `begin` on, in place of every batch entry.
template <class T, class S>
SCANKIT_DEVICE void begin_at(S& of, int begin) {
  if (of.data != nullptr) of.data = static_cast<char*>(const_cast<void*>(of.data)) + begin * Index{T::kSize};
  of.batch_stride = 0;
}
template <class T>
SCANKIT_DEVICE void take_steps(Common& c, const Steps& steps) {
  c.length = steps.length;
  begin_at<T>(c.u, steps.begin), begin_at<T>(c.delta, steps.begin), begin_at<T>(c.z, steps.begin);
  begin_at<T>(c.B, steps.begin), begin_at<T>(c.C, steps.begin);
}
// From the sequence's first chunk on (SavedStates in params.h).
SCANKIT_DEVICE void take_chunks(SavedStates& x, const Steps& steps, int sequence) {
  if (x.data != nullptr) x.data += (steps.begin / kTile + Index{sequence}) * x.chunk_stride;
  x.batch_stride = 0;
}

// Whether whole vectors of so many steps stay whole.
SCANKIT_DEVICE bool in_multiples(const Steps& steps, int of) {
  return (steps.begin | steps.length) % of == 0;
}

template <class T>
SCANKIT_DEVICE void take_sequence(ForwardArguments& p, int sequence) {
  Forward& f = p.forward;
  const Steps steps = steps_of(f.common, sequence);
  f.x = general_states_of(f.common, f.x, p.x_in_workspace, p.workspace);
  p.x_in_workspace = false;
  take_chunks(f.x, steps, sequence);
  take_steps<T>(f.common, steps);
  begin_at<T>(f.out, steps.begin), begin_at<T>(f.out_z, steps.begin);
  p.aligned = p.aligned && in_multiples(steps, 8);
  p.end = steps.length;
}

template <class T>
SCANKIT_DEVICE void take_sequence(BackwardArguments& p, int sequence) {
  Backward& g = p.backward;
  const Steps steps = steps_of(g.common, sequence);
  g.x = general_states_of(g.common, g.x, p.x_in_workspace, p.workspace);
  p.x_in_workspace = false;
  take_chunks(g.x, steps, sequence);
  take_steps<T>(g.common, steps);
  begin_at<T>(g.dout, steps.begin), begin_at<T>(g.out, steps.begin);
  begin_at<T>(g.du, steps.begin), begin_at<T>(g.ddelta, steps.begin);
  begin_at<T>(g.dz, steps.begin), begin_at<T>(g.out_z, steps.begin);
  p.projections += steps.begin * Index{sizeof(float)};
  p.aligned = p.aligned && in_multiples(steps, 8);
  p.halves = p.halves && in_multiples(steps, 4);
}

// The block's own arguments in shared memory, at `to`: in registers they would be too many.
template <class T, class Arguments>
SCANKIT_DEVICE const Arguments& own_arguments(float* to, const Arguments& given, int sequence) {
  static_assert(sizeof(Arguments) % 8 == 0);
  auto& own = *reinterpret_cast<Arguments*>(to);
  const auto* from = reinterpret_cast<const unsigned*>(&given);
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(Arguments) / 4); i += blockDim.x)
    reinterpret_cast<unsigned*>(to)[i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) take_sequence<T>(own, sequence);
  __syncthreads();
  return own;
}

template <class T, class L, class O>
SCANKIT_DEVICE void packed_forward(const ForwardArguments& given) {
  using M = ForwardMemory<L, false, O>;
  extern __shared__ __align__(16) float memory[];
  const Place place = find_place(given.forward.common, given.tiling, L::kWarpChannels);
  tiled_forward<T, L, false, O>(
      own_arguments<T>(memory + M::kBlock + blockDim.x / 32 * M::kWarp, given, place.batch));
}
template <class T, class L, class O>
SCANKIT_DEVICE void packed_backward(const BackwardArguments& given) {
  using M = BackwardMemory<L, false, O>;
  extern __shared__ __align__(16) float memory[];
  const Place place = find_place(given.backward.common, given.tiling, L::kWarpChannels);
  tiled_backward<T, L, false, O>(
      own_arguments<T>(memory + M::kBlock + blockDim.x / 32 * M::kWarp, given, place.batch));
}

}  // namespace scankit::selective_scan
