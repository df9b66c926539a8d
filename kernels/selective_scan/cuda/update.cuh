// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/tile.cuh"

// One step of decoding: state = exp(dt A) state + dt B x in place, out = (C state + D x) silu(z). A thread
// has eight states of a channel, `lanes` neighbours (a power of two, so that shuffles stay among them)
// have the channel; a block has channels of one batch entry. What it costs is reading and writing the
// state, and the launch. Any stride of x, dt, z and out is taken: each is one element a channel.
namespace scankit::selective_scan {

// Reads the first `count` of eight elements at `at` and makes the others 0. 16-bit ones off 16-byte places
// come one by one: simpler than load_eight's funnel shifts, and there are few.
template <class T>
SCANKIT_DEVICE void load_step_eight(float (&v)[8], const void* from, Index at, int count) {
  const char* p = static_cast<const char*>(from) + at * T::kSize;
  Eight<T> e;
  if (T::kSize == 4 || (count >= 8 && misalignment(p) == 0)) {
    load_eight(e, p, count);
  } else {
    const auto* halves = reinterpret_cast<const unsigned short*>(p);
#pragma unroll
    for (int i = 0; i < T::kWords; ++i) {
      const unsigned low = 2 * i < count ? halves[2 * i] : 0u;
      e.w[i] = low | (2 * i + 1 < count ? static_cast<unsigned>(halves[2 * i + 1]) << 16 : 0u);
    }
  }
  T::unpack(e.w, v);
}

// One element. The rest of the eight is dropped by the compiler.
template <class T>
SCANKIT_DEVICE float load_one(const void* from, Index at) {
  Eight<T> e = {};
  float v[8];
  if constexpr (T::kSize == 4) {
    e.w[0] = static_cast<const unsigned*>(from)[at];
  } else {
    e.w[0] = static_cast<const unsigned short*>(from)[at];
  }
  T::unpack(e.w, v);
  return v[0];
}
// Rounds one value to T; the other seven of the pack are dropped likewise.
template <class T>
SCANKIT_DEVICE void store_one(void* to, Index at, float value) {
  const float v[8] = {value};
  unsigned w[T::kWords];
  T::pack(v, w);
  if constexpr (T::kSize == 4) {
    static_cast<unsigned*>(to)[at] = w[0];
  } else {
    static_cast<unsigned short*>(to)[at] = static_cast<unsigned short>(w[0]);
  }
}
// D or dt_bias of a channel, of fp32 or of x's type; 0 where there is none.
template <class T>
SCANKIT_DEVICE float load_parameter(const void* from, DType dtype, int channel) {
  if (from == nullptr) return 0.0f;
  return dtype == DType::F32 ? load_one<Float>(from, channel) : load_one<T>(from, channel);
}

// T: the type of x; S: that of the state. The thread has the states [first, first + 8) of the channel,
// which may be past the last state or channel: such a thread adds 0 to the sum and writes nothing. out is
// made from the state before it is rounded to S.
template <class T, class S>
SCANKIT_DEVICE void update_states(const UpdateArguments& p, int batch, int channel, int first) {
  const Update& u = p.update;
  const bool is_there = channel < u.dim;
  const int count = is_there ? u.states - first : 0;
  float h[8] = {}, B[8] = {}, C[8] = {}, x = 0.0f, sum = 0.0f;
  char* state = static_cast<char*>(u.state) +
                (batch * u.state_batch_stride + channel * u.state_dim_stride + first) * S::kSize;
  if (count > 0) {
    const int group = channel / p.channels_per_group;
    load_step_eight<S>(h, state, 0, count);
    load_step_eight<T>(B, u.B.data, batch * u.B.batch_stride + group * u.B.group_stride + first, count);
    load_step_eight<T>(C, u.C.data, batch * u.C.batch_stride + group * u.C.group_stride + first, count);
    float A[8];
    const float* rates = u.A + channel * u.A_dim_stride + first * u.A_state_stride;
    if (u.A_state_stride == 1) {
      load_step_eight<Float>(A, rates, 0, count);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) A[i] = i < count ? rates[i * u.A_state_stride] : 0.0f;
    }
    float dt = load_one<T>(u.dt.data, batch * u.dt.batch_stride + channel * u.dt.dim_stride) +
               load_parameter<T>(u.dt_bias, u.bias_dtype, channel);
    x = load_one<T>(u.x.data, batch * u.x.batch_stride + channel * u.x.dim_stride);
    if (u.softplus) dt = softplus<true>(dt);
    const float input = dt * x;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      h[i] = fmaf(exp2_approx(dt * (kLog2E * A[i])), h[i], input * B[i]);
      if (i < count) sum = fmaf(C[i], h[i], sum);
    }
    store_eight<S>(state, h, count);
  }
  // Over the channel's lanes. All 32 lanes of the warp get here, also those without a channel.
  for (int distance = 1; distance < p.lanes; distance *= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (first != 0 || !is_there) return;
  if (u.D != nullptr) sum = fmaf(load_parameter<T>(u.D, u.D_dtype, channel), x, sum);
  if (u.z.data != nullptr) {
    const float z = load_one<T>(u.z.data, batch * u.z.batch_stride + channel * u.z.dim_stride);
    sum *= z * sigmoid(z);
  }
  store_one<T>(u.out.data, batch * u.out.batch_stride + channel * u.out.dim_stride, sum);
}

// grid.x: `blocks` blocks for each batch entry, kUpdateThreads / lanes channels each.
// A block is kUpdateThreads threads, p.lanes of them a channel: a channel never spans two warps, as lanes
// is a power of two up to 32.
template <class T>
SCANKIT_DEVICE void update_kernel(const UpdateArguments& p) {
  const int batch = static_cast<int>(blockIdx.x / p.blocks), tile = static_cast<int>(blockIdx.x % p.blocks);
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = tile * (kUpdateThreads / p.lanes) + thread / p.lanes, first = thread % p.lanes * 8;
  if (T::kSize == 4 || p.update.state_dtype == DType::F32) {
    update_states<T, Float>(p, batch, channel, first);
  } else {
    update_states<T, T>(p, batch, channel, first);
  }
}

}  // namespace scankit::selective_scan
