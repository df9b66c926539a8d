// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

// scankit_embed(COMPRESSED) of the build puts a file's bytes, compressed with gzip, between SYMBOL and SYMBOL_end.
#define SCANKIT_EMBEDDED(symbol)  \
  extern "C" const char symbol[]; \
  extern "C" const char symbol##_end[]

namespace scankit {

// The file as it was when it was embedded, such as the bytes between scankit_module_causal_conv1d_cuda and its _end.
// 2 MB take about 10 ms, so the callers keep the answer. Bytes that are not gzip's are a defect of the build: the
// program ends.
std::string decompress_embedded(const char* begin, const char* end);

}  // namespace scankit
