// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builder/module/target.h"
#include "doctor/base/result.h"

// Section .scankit.images, the module's own index of its images (builder/README.md has the layout). On the
// user's machine kernels/common/driver_images.cc reads it.
namespace scankit::module {

struct IndexedImage {
  std::string unit;
  Target target;                       // the index knows no "a" and no "f"
  std::uint64_t offset = 0, size = 0;  // of the payload, in the file
  std::uint64_t full_size = 0;         // of the image, where the payload is an LZ4 block; 0: it is the image
  std::string sha256;                  // of the payload
};

// `fatbin`: where .nv_fatbin is in the file.
std::string write_image_index(const std::vector<IndexedImage>& images, std::uint64_t fatbin);

// Every payload of the result is inside the file. Errc::NotFound if the file has no index.
Result<std::vector<IndexedImage>> read_image_index(std::string_view file);

// The image, unpacked, of an index of this file.
Result<std::string> image_bytes(std::string_view file, const IndexedImage& image);

}  // namespace scankit::module
