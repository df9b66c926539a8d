// SPDX-License-Identifier: Apache-2.0
#include "builder/module/module_diff.h"

#include <algorithm>
#include <sstream>

#include "builder/module/assemble.h"
#include "builder/module/little_endian.h"
#include "builder/module/target.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

struct IndexedImage {
  std::string unit, target;
  bool ptx = false;
  std::string_view bytes;
};

// By the module's own index (builder/README.md); empty where there is none, as in a torch flavor's module.
std::vector<IndexedImage> images_of(std::string_view file) {
  constexpr std::size_t kHeader = 16, kEntry = 128, kName = 64;
  std::vector<IndexedImage> images;
  const auto index = section_bytes(file, ".scankit.images");
  if (!index || !index->starts_with("SKIMAGE1")) return images;
  for (std::size_t at = kHeader; at + kEntry <= index->size(); at += kEntry) {
    const std::string_view entry = std::string_view(*index).substr(at, kEntry);
    const auto offset = read_little_endian<std::uint64_t>(entry, 16);
    const auto size = read_little_endian<std::uint64_t>(entry, 24);
    if (offset > file.size() || size > file.size() - offset) return {};
    const bool ptx = read_little_endian<std::uint32_t>(entry, 0) == 1;
    const Target target{ptx, read_little_endian<std::uint32_t>(entry, 4), ""};
    const std::string_view name = entry.substr(kName);
    images.push_back(
        {std::string(name.substr(0, name.find('\0'))), target.name(), ptx, file.substr(offset, size)});
  }
  return images;
}

// The first line that differs, of a text of two builds.
std::string text_difference(const std::string& where, std::string_view first, std::string_view second) {
  constexpr std::size_t kShown = 160;
  std::istringstream a{std::string(first)}, b{std::string(second)};
  std::string of_a, of_b;
  for (std::size_t number = 1;; ++number) {
    const bool more_a = static_cast<bool>(std::getline(a, of_a));
    const bool more_b = static_cast<bool>(std::getline(b, of_b));
    if (!more_a && !more_b) break;
    if (!more_a) of_a.clear();
    if (!more_b) of_b.clear();
    if (of_a != of_b || more_a != more_b)
      return say("{}: line {} is \"{}\" in the first build and \"{}\" in the second", where, number,
                 of_a.substr(0, kShown), of_b.substr(0, kShown));
  }
  return say("{}: the ends of its lines differ", where);
}

void add_image(const IndexedImage& a, const IndexedImage& b, std::vector<std::string>& lines) {
  if (a.bytes == b.bytes && a.unit == b.unit && a.target == b.target) return;
  const std::string where = say("image {} for {}", a.unit, a.target);
  if (a.unit != b.unit || a.target != b.target) {
    lines.push_back(say("{}: the second build has {} for {} in its place", where, b.unit, b.target));
  } else if (a.ptx) {
    lines.push_back(text_difference(where, a.bytes, b.bytes));
  } else {
    for (std::string& line : elf_differences(where, a.bytes, b.bytes)) lines.push_back(std::move(line));
  }
}

}  // namespace

std::vector<std::string> module_differences(std::string_view first, std::string_view second) {
  std::vector<std::string> lines;
  if (first == second) return lines;
  const auto a = images_of(first), b = images_of(second);
  if (a.size() != b.size()) lines.push_back(say("the builds hold {} and {} images", a.size(), b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) add_image(a[i], b[i], lines);
  const auto one = section_bytes(first, ".scankit.manifest"),
             two = section_bytes(second, ".scankit.manifest");
  if (lines.empty() && one && two && *one != *two)
    lines.push_back(text_difference(say("the manifest"), *one, *two));
  // We write these three from the images, whose differences say it better.
  std::vector<std::string> said;
  if (!lines.empty()) said = {".nv_fatbin", ".scankit.images", ".scankit.manifest"};
  for (std::string& line : elf_differences(say("the module"), first, second, said))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace scankit
