// SPDX-License-Identifier: Apache-2.0
#include "builder/module/embedded.h"

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace scankit {

std::string decompress_embedded(const char* begin, const char* end) {
  // RFC 1952: the last four bytes are the length of the file, least significant byte first.
  std::uint32_t length = 0;
  if (end - begin < 18) std::abort();  // a header of 10 bytes and a trailer of 8
  for (int i = 0; i < 4; ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(end[i - 4])) << (8 * i);
  std::string file(length, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) std::abort();  // 16: a gzip header
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(begin));
  stream.avail_in = static_cast<uInt>(end - begin);
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = length;
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) std::abort();
  return file;
}

}  // namespace scankit
