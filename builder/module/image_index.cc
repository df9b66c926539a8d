// SPDX-License-Identifier: Apache-2.0
#include "builder/module/image_index.h"

#include "builder/module/assemble.h"
#include "doctor/elf/bytes.h"
#include "doctor/elf/fatbin.h"

namespace scankit::module {
namespace {

constexpr std::string_view kMagic = "SKIMAGE1";
constexpr std::size_t kHeader = 16, kEntry = 128, kName = 64;
// Where the fields of an entry are: ImageEntry of kernels/common/driver_context.h.
constexpr std::size_t kKindAt = 0, kSmAt = 4, kFullSizeAt = 8, kOffsetAt = 16, kSizeAt = 24, kHashAt = 32,
                      kNameAt = 64;
constexpr std::uint32_t kPtx = 1, kCubin = 2;

Error bad_index(Message what) {
  return {Errc::Malformed, message("the index of the device images is damaged: {}", std::move(what)), ""};
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

IndexedImage image_of(std::string_view entry) {
  const std::string_view name = entry.substr(kNameAt, kName);
  return {std::string(name.substr(0, name.find('\0'))),
          {elf::read_little_endian<std::uint32_t>(entry, kKindAt) == kPtx,
           elf::read_little_endian<std::uint32_t>(entry, kSmAt), ""},
          elf::read_little_endian<std::uint64_t>(entry, kOffsetAt),
          elf::read_little_endian<std::uint64_t>(entry, kSizeAt),
          elf::read_little_endian<std::uint32_t>(entry, kFullSizeAt),
          hex(entry.substr(kHashAt, 32))};
}

}  // namespace

std::string write_image_index(const std::vector<IndexedImage>& images, std::uint64_t fatbin) {
  std::string index(kMagic);
  elf::append_little_endian(index, static_cast<std::uint32_t>(images.size()));
  elf::append_little_endian(index, static_cast<std::uint32_t>(kEntry));
  for (const IndexedImage& image : images) {
    elf::append_little_endian(index, image.target.ptx ? kPtx : kCubin);
    elf::append_little_endian(index, static_cast<std::uint32_t>(image.target.sm));
    elf::append_little_endian(index, static_cast<std::uint32_t>(image.full_size));
    // strip and patchelf may move the section, and the offset minus this stays right.
    elf::append_little_endian(index, static_cast<std::uint32_t>(fatbin));
    elf::append_little_endian(index, image.offset);
    elf::append_little_endian(index, image.size);
    for (std::size_t i = 0; i < 64; i += 2)
      index += static_cast<char>(std::stoi(image.sha256.substr(i, 2), nullptr, 16));
    std::string name = image.unit;
    name.resize(kName, '\0');
    index += name;
  }
  return index;
}

Result<std::vector<IndexedImage>> read_image_index(std::string_view file) {
  SCANKIT_TRY(const std::string section, section_bytes(file, ".scankit.images"));
  const std::string_view index = section;
  if (!index.starts_with(kMagic) || index.size() < kHeader ||
      elf::read_little_endian<std::uint32_t>(index, kMagic.size() + 4) != kEntry)
    return bad_index(message("it is of another version"));
  const auto count = elf::read_little_endian<std::uint32_t>(index, kMagic.size());
  if (index.size() != kHeader + kEntry * std::uint64_t{count})
    return bad_index(message("its length does not match the number of its images"));
  std::vector<IndexedImage> images;
  for (std::size_t at = kHeader; at < index.size(); at += kEntry) {
    images.push_back(image_of(index.substr(at, kEntry)));
    const IndexedImage& image = images.back();
    const auto kind = elf::read_little_endian<std::uint32_t>(index, at + kKindAt);
    if (kind != kPtx && kind != kCubin)
      return bad_index(message("image {} is of the unknown kind {}", image.unit, kind));
    if (image.offset > file.size() || image.size > file.size() - image.offset)
      return bad_index(message("image {} extends beyond the file", image.unit));
  }
  return images;
}

Result<std::string> image_bytes(std::string_view file, const IndexedImage& image) {
  const std::string_view payload = file.substr(image.offset, image.size);
  if (image.full_size == 0) return std::string(payload);
  return elf::unpack_lz4(payload, image.full_size);
}

}  // namespace scankit::module
