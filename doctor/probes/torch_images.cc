// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/torch_images.h"

#include <algorithm>
#include <tuple>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/fatbin.h"

namespace scankit {
namespace {

Result<std::vector<FatbinEntry>> images_of(const Host& host, const std::string& path) {
  SCANKIT_TRY(auto source, host.open(path));
  SCANKIT_TRY(const Image image, Image::open(std::shared_ptr<const ByteSource>(std::move(source))));
  return find_device_images(image);
}

auto key(const DeviceImage& image) {
  return std::tie(image.kind, image.sm, image.specific, image.isa, image.compression);
}

void add(const FatbinEntry& entry, std::vector<DeviceImage>& images) {
  DeviceImage found{entry.kind, entry.sm, entry.specific, "", entry.compression, entry.size, ""};
  if (entry.kind == "ptx")
    found.isa = std::to_string(entry.isa_major) + "." + std::to_string(entry.isa_minor);
  const auto same =
      std::ranges::find_if(images, [&](const DeviceImage& seen) { return key(seen) == key(found); });
  if (same == images.end())
    images.push_back(std::move(found));
  else
    same->size += found.size;
}

}  // namespace

std::string read_torch_images(const Host& host, Torch& torch) {
  if (torch.cuda.empty()) return "";
  for (const Library& library : torch.libraries) {
    // Some releases of 1.x split the library: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    const std::string name = path_basename(library.path);
    if (name != "libtorch_cuda.so" && name != "libtorch_cuda_cu.so" && name != "libtorch_cuda_cpp.so")
      continue;
    const auto entries = images_of(host, library.path);
    if (!entries) return say("{}: its device code cannot be read: {}", name, entries.error().message);
    for (const FatbinEntry& entry : *entries) add(entry, torch.images);
  }
  std::ranges::sort(torch.images, [](const auto& a, const auto& b) {
    return std::tie(a.sm, a.specific, a.kind) < std::tie(b.sm, b.specific, b.kind);
  });
  return "";
}

}  // namespace scankit
