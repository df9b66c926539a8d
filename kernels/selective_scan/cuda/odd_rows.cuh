// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/projections.cuh"

// Rows of 16-bit elements that start anywhere, as of an odd length (option kOdd, 9 to 16 states). A piece of such
// a row is no vector, and as single words it costs a multiprocessor's load and store unit five times as much as
// a vector does. So a tile comes as the five 16-byte vectors that it is part of, by cp.async a tile ahead, and
// a funnel shift makes a piece of what a lane reads of them in shared memory. What the forward writes goes the
// other way: pieces to shared memory, and vectors from there, each made of two neighbouring pieces. The end of
// a tile's last piece waits there for the next tile. Only at both ends of a row, or of a segment, are single
// words and halves written. The backward has no shared memory left for that, and writes words.
//
// Bytes before a row's first element are read with it: of the 16 that start at a 16-byte place, which an
// allocation has all or none of. Those behind its last one are not.
namespace scankit::selective_scan {

// Asks for the vector that a lane's piece at `from` starts in, and, if it is the tile's `last` one of its row,
// for the vector behind that. count: elements that exist from the piece's first one on; -8 and less: there is no such row.
SCANKIT_DEVICE void ask_vectors(float* to, const char* from, int count, bool last) {
  const int before = static_cast<int>(misalignment(from)), bytes = 2 * count + before;
  copy_some_bytes(to, from - before, bytes);
  if (last) copy_some_bytes(to + 4, from - before + 16, bytes - 16);
}
// The piece that starts so many bytes into its vector.
template <class T>
SCANKIT_DEVICE void read_piece(Eight<T>& e, const float* vector, unsigned before) {
  load_words(e, reinterpret_cast<const char*>(vector) + before);
}

// Of eight elements at a 16-byte place, those from `begin` until before `end`; any numbers.
template <class T>
SCANKIT_DEVICE void store_between(char* to, const Eight<T>& e, int begin, int end) {
  if (begin <= 0 && end >= 8) {
    *reinterpret_cast<uint4*>(to) = make_uint4(e.w[0], e.w[1], e.w[2], e.w[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool low = 2 * i >= begin && 2 * i < end, high = 2 * i + 1 >= begin && 2 * i + 1 < end;
    if (low && high)
      reinterpret_cast<unsigned*>(to)[i] = e.w[i];
    else if (low || high)
      reinterpret_cast<unsigned short*>(to)[2 * i + high] =
          static_cast<unsigned short>(e.w[i] >> (16 * high));
  }
}

// One row of out or out_z in shared memory: a vector of the tile before, then four of the tile, in pieces.
template <class T>
SCANKIT_DEVICE void put_piece(float* row, int q, const Eight<T>& e) {
  *reinterpret_cast<uint4*>(row + 4 + 4 * q) = make_uint4(e.w[0], e.w[1], e.w[2], e.w[3]);
}
// Writes the vector that the lane's piece starts in. `to`: where the piece goes; begin, end: elements from the
// piece's first one on that may be written.
template <class T>
SCANKIT_DEVICE void store_vector(char* to, const float* row, int q, int begin, int end) {
  const int before = static_cast<int>(misalignment(to));
  Eight<T> e;
  load_words(e, reinterpret_cast<const char*>(row + 4 + 4 * q) - before);
  store_between<T>(to - before, e, begin + before / 2, end + before / 2);
}

}  // namespace scankit::selective_scan
