// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/layout.h"
#include "kernels/selective_scan/cuda/numeric.cuh"

// What all plain kernels share: which part of a problem a warp has, moving pieces (eight steps of a
// row) and tiles (32 steps) between global memory, shared memory and registers, and sums over the lanes
// of a channel.
//
// Tensors are read and written in whole 16-byte vectors where the address allows it; nothing outside a row
// is ever touched, since it may belong to another tensor or to no allocation at all. Elements that do not
// exist read as zero, which makes them harmless: with dt = 0 and u = 0 a step leaves the state as it was.
namespace scankit::selective_scan {

// A device twin of chunk_count in params.h, which NVRTC does not see.
SCANKIT_DEVICE Index tile_count(Index length) { return (length + kTile - 1) / kTile; }

// Which part of the problem a block has, and which part of that a warp has. A block has one batch entry
// and channels of one group, so its warps share B and C.
struct Place {
  int batch, group, tile;  // tile: which of the group's blocks
  int channel;             // the warp's first, of all channels
  int channels;            // how many of the warp's channels exist
};
// Takes blockIdx.x apart: channel tile fastest, then group, then batch (Tiling in arguments.h). A warp
// behind the group's last channel has no channels, but still takes part in staging and barriers; its
// `channel` is one that exists, so that addresses made from it stay in range.
// warp_channels: channels of a warp, from the layout. blockIdx.x is below 2^31, which the planner has
// checked (block_count); grid.y ends at 65535 and has segments.
SCANKIT_DEVICE void find_channels(Place& place, const Tiling& tiling, int warp_channels, int team) {
  const Index warps = blockDim.x / (32 * team), warp = threadIdx.x / (32 * team);
  const Index first = (place.tile * warps + warp) * warp_channels;
  const Index left = tiling.channels_per_group - first;
  place.channels = static_cast<int>(left < 0 ? 0 : left < warp_channels ? left : warp_channels);
  place.channel =
      static_cast<int>(place.group * static_cast<Index>(tiling.channels_per_group) + (left > 0 ? first : 0));
}
SCANKIT_DEVICE Place find_place(const Common& common, const Tiling& tiling, int warp_channels, int team = 1) {
  const unsigned block = blockIdx.x, tiles = tiling.tiles_per_group, groups = common.groups;
  Place place;
  place.tile = static_cast<int>(block % tiles);
  place.group = static_cast<int>(block / tiles % groups);
  place.batch = static_cast<int>(block / tiles / groups);
  find_channels(place, tiling, warp_channels, team);
  return place;
}

// A value as a type, for a generic lambda (NVRTC has no <type_traits>).
template <bool kValue>
struct Constant {
  SCANKIT_DEVICE constexpr operator bool() const { return kValue; }
};

// A piece as it is in memory: eight elements in 8 (fp32) or 4 (16-bit) registers. It stays packed until it
// is used, because unpacked 16-bit elements take twice the registers while the load is under way.
template <class T>
struct Eight {
  unsigned w[T::kWords];
};

// Bytes past the last 16-byte boundary.
SCANKIT_DEVICE unsigned misalignment(const void* p) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(p) & 15);
}

// Elements i and i + 1 of a 16-bit row of `count`, from the aligned word that contains them. A half that
// is not part of the row is not read, since it may be behind the end of the allocation.
SCANKIT_DEVICE unsigned load_pair(const unsigned* word, int i, int count) {
  const auto* halves = reinterpret_cast<const unsigned short*>(word);
  const bool low = i >= 0 && i < count, high = i + 1 < count;
  if (low && high) return *word;
  return low ? halves[0] : high ? static_cast<unsigned>(halves[1]) << 16 : 0u;
}

// Eight 16-bit elements of a row at any place, of which all and, at an odd one, the element after them exist. At an
// odd element the words start one element early: five words, of which the funnel shift makes four. The first
// one may begin with the half before the row: an allocation starts at a word.
template <class T>
SCANKIT_DEVICE void load_words(Eight<T>& e, const char* p) {
  const int odd = (misalignment(p) & 2) / 2;
  const auto* words = reinterpret_cast<const unsigned*>(p - 2 * odd);
  unsigned from[5];
#pragma unroll
  for (int i = 0; i < 5; ++i) from[i] = words[i < 4 ? i : 3 + odd];
#pragma unroll
  for (int i = 0; i < 4; ++i) e.w[i] = __funnelshift_r(from[i], from[i + 1], 16 * odd);
}

// Reads the first `count` of eight elements (any count: 0 and less read nothing, 8 and more all) and makes
// the others 0. At places that are not 16-byte aligned, 16-bit elements come as aligned words and are
// shifted into place, with five loads instead of eight.
template <class T>
SCANKIT_DEVICE void load_eight(Eight<T>& e, const char* p, int count) {
  if (count >= 8 && misalignment(p) == 0) {
#pragma unroll
    for (int i = 0; i < T::kWords / 4; ++i) {
      const uint4 q = reinterpret_cast<const uint4*>(p)[i];
      e.w[4 * i] = q.x, e.w[4 * i + 1] = q.y, e.w[4 * i + 2] = q.z, e.w[4 * i + 3] = q.w;
    }
  } else if constexpr (T::kSize == 4) {
#pragma unroll
    for (int i = 0; i < 8; ++i) e.w[i] = i < count ? reinterpret_cast<const unsigned*>(p)[i] : 0u;
  } else if (count >= 8 && misalignment(p) == 8) {  // rows of 4 k elements
    const uint2 low = reinterpret_cast<const uint2*>(p)[0], high = reinterpret_cast<const uint2*>(p)[1];
    e.w[0] = low.x, e.w[1] = low.y, e.w[2] = high.x, e.w[3] = high.y;
  } else {
    // As load_words, and where that would read behind the row, a test for each half.
    const int odd = (misalignment(p) & 2) / 2;
    const auto* words = reinterpret_cast<const unsigned*>(p - 2 * odd);
    unsigned from[5];
    if (count >= 8 + odd) return load_words(e, p);
#pragma unroll
    for (int i = 0; i < 5; ++i)
      from[i] = i < 4 + odd ? load_pair(words + i, 2 * i - odd, count > 8 ? 8 : count) : 0u;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned pair = __funnelshift_r(from[i], from[i + 1], 16 * odd);
      e.w[i] = 2 * i + 1 < count ? pair : 2 * i < count ? pair & 0xffffu : 0u;
    }
  }
}

// load_eight where every row starts at a 16-byte place and has a multiple of eight steps (`aligned` of the
// arguments): a piece exists as a whole or not at all, and there is no address to test.
template <class T>
SCANKIT_DEVICE void load_whole(Eight<T>& e, const char* p, bool there) {
#pragma unroll
  for (int i = 0; i < T::kWords / 4; ++i) {
    const uint4 q = there ? reinterpret_cast<const uint4*>(p)[i] : make_uint4(0, 0, 0, 0);
    e.w[4 * i] = q.x, e.w[4 * i + 1] = q.y, e.w[4 * i + 2] = q.z, e.w[4 * i + 3] = q.w;
  }
}
template <bool kAligned, class T>
SCANKIT_DEVICE void load_piece(Eight<T>& e, const char* p, int count) {
  if constexpr (kAligned)
    load_whole(e, p, count > 0);
  else
    load_eight(e, p, count);
}

// The counterpart of load_words: whole words; at an odd element three of them, between a half on either side.
SCANKIT_DEVICE void store_words(char* p, const unsigned* w) {
  const int odd = (misalignment(p) & 2) / 2;
  auto* h = reinterpret_cast<unsigned short*>(p);
  auto* words = reinterpret_cast<unsigned*>(p + 2 * odd);
#pragma unroll
  for (int i = 0; i < 3; ++i) words[i] = __funnelshift_r(w[i], w[i + 1], 16 * odd);
  if (odd != 0)
    h[0] = static_cast<unsigned short>(w[0]), h[7] = static_cast<unsigned short>(w[3] >> 16);
  else
    words[3] = w[3];
}
// The counterpart of load_eight: rounds eight fp32 values to T and writes the first `count` of them.
template <class T>
SCANKIT_DEVICE void store_eight(char* p, const float (&v)[8], int count) {
  unsigned w[T::kWords];
  T::pack(v, w);
  if (count >= 8 && misalignment(p) == 0) {
#pragma unroll
    for (int i = 0; i < T::kWords / 4; ++i)
      reinterpret_cast<uint4*>(p)[i] = make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
  } else if constexpr (T::kSize == 4) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < count) reinterpret_cast<unsigned*>(p)[i] = w[i];
  } else if (count >= 8 && misalignment(p) == 8) {
    reinterpret_cast<uint2*>(p)[0] = make_uint2(w[0], w[1]);
    reinterpret_cast<uint2*>(p)[1] = make_uint2(w[2], w[3]);
  } else if (count >= 8) {
    store_words(p, w);
  } else {
    auto* h = reinterpret_cast<unsigned short*>(p);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < count) h[i] = static_cast<unsigned short>(w[i / 2] >> (16 * (i & 1)));
  }
}

// The counterpart of load_whole, for a piece that exists.
template <class T>
SCANKIT_DEVICE void store_whole(char* p, const float (&v)[8]) {
  unsigned w[T::kWords];
  T::pack(v, w);
#pragma unroll
  for (int i = 0; i < T::kWords / 4; ++i)
    reinterpret_cast<uint4*>(p)[i] = make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
}
// Either of the two, for a piece with count > 0.
template <class T>
SCANKIT_DEVICE void store_piece(bool aligned, char* p, const float (&v)[8], int count) {
  if (aligned)
    store_whole<T>(p, v);
  else
    store_eight<T>(p, v, count);
}

// Brings a line to the L2 cache. Unlike a load it takes no register, and nothing waits for it.
#ifdef SCANKIT_EMULATED
SCANKIT_DEVICE void prefetch(const char*) {}
#else
// A hint: nothing depends on whether the line comes.
SCANKIT_DEVICE void prefetch(const char* p) { asm volatile("prefetch.L2 [%0];" ::"l"(p)); }
#endif

// cp.async (since compute capability 8.0): 16, 8 or 4 bytes from global to shared memory, past the registers, or
// zeros where they are not `there`. The address may then be anything, even null: the code relies on a source
// size of 0 reading nothing. A copy is sure to have happened only behind wait_for_copies, and only for the
// thread that asked for it: what other threads read needs a barrier as well. Older GPUs copy at once through
// registers; the emulator copies as late, or as early, as a test asks it to.
#ifdef SCANKIT_EMULATED
SCANKIT_DEVICE void copy_16_bytes(float* to, const char* from, bool there) {
  emulator::Block::current()->copy(to, there ? from : nullptr, 16);
}
SCANKIT_DEVICE void copy_8_bytes(float* to, const char* from, bool there) {
  emulator::Block::current()->copy(to, there ? from : nullptr, 8);
}
SCANKIT_DEVICE void copy_4_bytes(float* to, const char* from, bool there) {
  emulator::Block::current()->copy(to, there ? from : nullptr, 4);
}
SCANKIT_DEVICE void commit_copies() { emulator::Block::current()->commit_copies(); }
SCANKIT_DEVICE void wait_for_copies() { emulator::Block::current()->wait_for_copies(); }
#elif __CUDA_ARCH__ < 800
SCANKIT_DEVICE void copy_16_bytes(float* to, const char* from, bool there) {
  *reinterpret_cast<uint4*>(to) = there ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
}
SCANKIT_DEVICE void copy_8_bytes(float* to, const char* from, bool there) {
  *reinterpret_cast<uint2*>(to) = there ? *reinterpret_cast<const uint2*>(from) : make_uint2(0, 0);
}
SCANKIT_DEVICE void copy_4_bytes(float* to, const char* from, bool there) {
  *to = there ? *reinterpret_cast<const float*>(from) : 0.0f;
}
SCANKIT_DEVICE void commit_copies() {}
SCANKIT_DEVICE void wait_for_copies() {}
#else
// cg goes through L2 only, and takes 16 bytes alone; 8 and 4 bytes need ca. The memory clobber keeps the
// compiler from moving reads of shared memory across.
SCANKIT_DEVICE void copy_16_bytes(float* to, const char* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
SCANKIT_DEVICE void copy_8_bytes(float* to, const char* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(there ? 8 : 0)
               : "memory");
}
SCANKIT_DEVICE void copy_4_bytes(float* to, const char* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(there ? 4 : 0)
               : "memory");
}
SCANKIT_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
SCANKIT_DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
#endif

// The first `bytes` of 16 at a 16-byte place (any even number: 0 and less none, 16 and more all), and zeros for the
// others. A part comes word by word, and a last half through a register: cp.async would take any number of bytes of a
// vector, but compute-sanitizer says that it reads all 16.
SCANKIT_DEVICE void copy_some_bytes(float* to, const char* from, int bytes) {
  if (bytes <= 0 || bytes >= 16) return copy_16_bytes(to, from, bytes >= 16);
#pragma unroll 1
  for (int at = 0; at < 16; at += 4)
    if (at + 2 != bytes) copy_4_bytes(to + at / 4, from + at, at + 4 <= bytes);
  if (bytes % 4 != 0)
    reinterpret_cast<unsigned*>(to)[bytes / 4] = *reinterpret_cast<const unsigned short*>(from + bytes - 2);
}

// A 16-bit piece from an 8-byte place, in two halves. `count` elements of it exist, a multiple of four
// (`halves` of the arguments).
// Two copies, as cp.async takes an address that is a multiple of its size (PTX ISA, cp.async): of 16 bytes
// these rows would have to start at 16-byte places.
SCANKIT_DEVICE void copy_halves(float* to, const char* from, int count) {
  copy_8_bytes(to, from, count > 0);
  copy_8_bytes(to + 2, from + 8, count > 4);
}

// Rows in shared memory: fp32, kPitch floats apart, one step a float. Four steps (a quad) are one 16-byte
// access, so `step` is a multiple of four.
SCANKIT_DEVICE float4& quad_at(float* row, int step) { return *reinterpret_cast<float4*>(row + step); }
// One row's piece as two 16-byte accesses. Shared memory has 32 banks of 4 bytes (CUDA Programming Guide),
// and a warp's 16-byte accesses are served eight lanes at a time: what eight neighbouring lanes touch
// decides about conflicts, hence kPitch.
SCANKIT_DEVICE void read_eight(float* row, float (&v)[8]) {
  const float4 a = quad_at(row, 0), b = quad_at(row, 4);
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}
SCANKIT_DEVICE void write_eight(float* row, const float (&v)[8]) {
  quad_at(row, 0) = make_float4(v[0], v[1], v[2], v[3]);
  quad_at(row, 4) = make_float4(v[4], v[5], v[6], v[7]);
}
SCANKIT_DEVICE void read_quad(float* row, int step, float (&v)[4]) {
  const float4 a = quad_at(row, step);
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
}

// The place of a row, (batch, channel) of a sequence, in bytes from its data.
template <class T, class S>
SCANKIT_DEVICE Index offset_of(const S& s, int batch, Index channel) {
  return (batch * s.batch_stride + channel * s.dim_stride) * T::kSize;
}
// A sequence's data, by bytes: all offsets in the kernels are in bytes, since the element type is a
// template argument and not the pointer's.
SCANKIT_DEVICE const char* data_of(const Sequence& s) { return static_cast<const char*>(s.data); }
SCANKIT_DEVICE char* data_of(const SequenceOut& s) { return static_cast<char*>(s.data); }
template <class T>
SCANKIT_DEVICE const char* row_of(const Sequence& s, int batch, Index channel) {
  return data_of(s) + offset_of<T>(s, batch, channel);
}
template <class T>
SCANKIT_DEVICE char* row_of(const SequenceOut& s, int batch, Index channel) {
  return data_of(s) + offset_of<T>(s, batch, channel);
}

// Sums v[t] over the kLanes lanes of a channel, for four steps at once. Not four butterflies of log2
// kLanes shuffles each: at each level, a lane gives away the half of the values that its partner keeps,
// three shuffles for four lanes instead of eight. Afterwards lane q has in v[0] the sum for step q & 3
// (four lanes and more), in v[0] and v[1] those for steps 2q and 2q + 1 (two lanes), or all four (one
// lane). All 32 lanes must call it.
// The mask of the shuffles names all 32 lanes, and each of them must execute it (CUDA Programming Guide,
// warp shuffle functions): callers never return or branch by lane before.
template <int kLanes>
SCANKIT_DEVICE void sum_lanes(float (&v)[4], int q) {
  constexpr unsigned kAll = 0xffffffffu;
  if constexpr (kLanes >= 2) {
    constexpr int kStep = kLanes == 2 ? 1 : 2;
    const bool upper = (q & kStep) != 0;
    const float send0 = upper ? v[0] : v[2], send1 = upper ? v[1] : v[3];
    const float keep0 = upper ? v[2] : v[0], keep1 = upper ? v[3] : v[1];
    v[0] = keep0 + __shfl_xor_sync(kAll, send0, kStep);
    v[1] = keep1 + __shfl_xor_sync(kAll, send1, kStep);
  }
  if constexpr (kLanes >= 4) {
    const bool upper = (q & 1) != 0;
    const float send = upper ? v[0] : v[1];
    v[0] = (upper ? v[1] : v[0]) + __shfl_xor_sync(kAll, send, 1);
#pragma unroll
    for (int step = 4; step < kLanes; step *= 2) v[0] += __shfl_xor_sync(kAll, v[0], step);
  }
}
// Puts what sum_lanes left into the channel's row, at four steps from `step` on; kAdd: adds it to what is
// there. With more than four lanes, lanes 4 and up have copies of the sums and write nothing.
template <int kLanes, bool kAdd>
SCANKIT_DEVICE void put_lanes(float* row, int step, const float (&v)[4], int q) {
  if constexpr (kLanes == 1) {
    float4 sum = make_float4(v[0], v[1], v[2], v[3]);
    if constexpr (kAdd) {
      const float4 old = quad_at(row, step);
      sum.x += old.x, sum.y += old.y, sum.z += old.z, sum.w += old.w;
    }
    quad_at(row, step) = sum;
  } else if constexpr (kLanes == 2) {
    float* to = row + step + 2 * q;
    to[0] = kAdd ? to[0] + v[0] : v[0];
    to[1] = kAdd ? to[1] + v[1] : v[1];
  } else if (kLanes == 4 || q < 4) {
    float* to = row + step + (q & 3);
    *to = kAdd ? *to + v[0] : v[0];
  }
}

// Reads kPer states of a channel, of which `count` exist (any number, also negative); the others become 0.
// A row of states may start anywhere, for instance where a batch stride of x is odd.
template <int kPer>
SCANKIT_DEVICE void load_states(float (&h)[kPer], const float* p, int count) {
  if constexpr (kPer == 4) {
    if (count >= 4 && misalignment(p) == 0) {
      const float4 q = *reinterpret_cast<const float4*>(p);
      h[0] = q.x, h[1] = q.y, h[2] = q.z, h[3] = q.w;
      return;
    }
  }
#pragma unroll
  for (int s = 0; s < kPer; ++s) h[s] = s < count ? p[s] : 0.0f;
}
// Writes all of them, as vectors, to a place that is aligned for that.
// p is a multiple of 4 kPer bytes, at most of 16 (save_place tests it): a vector access at any other place
// is an error of the whole context, not a slow one.
template <int kPer>
SCANKIT_DEVICE void write_states(float* p, const float (&h)[kPer]) {
  static_assert(kPer == 1 || kPer == 2 || kPer % 4 == 0);
  if constexpr (kPer == 1) *p = h[0];
  if constexpr (kPer == 2)
    *reinterpret_cast<uint2*>(p) = make_uint2(__float_as_uint(h[0]), __float_as_uint(h[1]));
#pragma unroll
  for (int s = 0; s + 4 <= kPer; s += 4)
    *reinterpret_cast<float4*>(p + s) = make_float4(h[s], h[s + 1], h[s + 2], h[s + 3]);
}
// Writes the first `count`, to any place.
template <int kPer>
SCANKIT_DEVICE void store_states(float* p, const float (&h)[kPer], int count) {
  if constexpr (kPer == 4) {
    if (count >= 4 && misalignment(p) == 0) {
      *reinterpret_cast<float4*>(p) = make_float4(h[0], h[1], h[2], h[3]);
      return;
    }
  }
#pragma unroll
  for (int s = 0; s < kPer; ++s)
    if (s < count) p[s] = h[s];
}

}  // namespace scankit::selective_scan
