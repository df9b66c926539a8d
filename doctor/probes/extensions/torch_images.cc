// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/torch_images.h"

#include <algorithm>
#include <tuple>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/fatbin.h"

namespace scankit {
namespace {

Result<Image> image_of(const Host& host, const std::string& path) {
  SCANKIT_TRY(auto source, host.open(path));
  return Image::open(std::shared_ptr<const ByteSource>(std::move(source)));
}

auto image_key(const DeviceImage& image) {
  return std::tie(image.kind, image.sm, image.specific, image.isa, image.compression);
}

// How the first cubin of a kind is written stands for all of them: one compiler made them.
void add_image(const FileBytes& file, const FatbinEntry& entry, std::vector<DeviceImage>& images) {
  DeviceImage found{entry.kind, entry.sm, entry.specific, "", entry.compression, entry.size};
  if (entry.kind == "ptx")
    found.isa = std::to_string(entry.isa_major) + "." + std::to_string(entry.isa_minor);
  const auto same = std::ranges::find_if(
      images, [&](const DeviceImage& seen) { return image_key(seen) == image_key(found); });
  if (same != images.end()) {
    same->size += found.size;
    return;
  }
  if (entry.kind == "cubin") found.elf_abi = cubin_abi(file, entry);
  images.push_back(std::move(found));
}

}  // namespace

std::string read_torch_images(const Host& host, Torch& torch) {
  if (torch.cuda.empty()) return "";
  for (const Library& library : torch.libraries) {
    // Some releases of 1.x split the library: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    const std::string name = path_basename(library.path);
    if (name != "libtorch_cuda.so" && name != "libtorch_cuda_cu.so" && name != "libtorch_cuda_cpp.so")
      continue;
    const auto image = image_of(host, library.path);
    const auto entries = image ? find_device_images(*image) : Result<std::vector<FatbinEntry>>(image.error());
    if (!entries) return say("{}: its device code cannot be read: {}", name, entries.error().message);
    for (const FatbinEntry& entry : *entries) add_image(image->file(), entry, torch.images);
  }
  std::ranges::sort(torch.images, [](const auto& a, const auto& b) {
    return std::tie(a.sm, a.specific, a.kind) < std::tie(b.sm, b.specific, b.kind);
  });
  return "";
}

}  // namespace scankit
