// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/version.h"
#include "doctor/torch_abi/date.h"
#include "doctor/torch_abi/release_sets.h"

namespace scankit {

std::string count_names(unsigned count) { return std::to_string(count) + (count == 1 ? " name" : " names"); }

std::string why_not_narrower(const Dating& dating) {
  if (dating.releases.size() == 1 && dating.torch_min && dating.torch_max) return "";
  if (dating.stable_abi) return "it needs only torch's stable C interface, which is made to outlive releases";
  if (dating.between_known_releases)
    return "no known release exports all its names: made for a nightly, a vendor's or a changed torch "
           "between these";
  std::string why = dating.torch_names <= 10 ? "it needs only " : "it needs ";
  return why + count_names(dating.torch_names) + " of torch, and each of these releases exports them";
}

void take_bounds(const Atlas& atlas, Set fits, Dating& dating) {
  const auto& releases = atlas.releases();
  for (std::size_t i = 0; i < releases.size(); ++i)
    if ((fits >> i & 1) != 0) dating.releases.push_back(releases[i].minor);
  if (fits == 0) return;
  if (oldest(fits) > 0) dating.torch_min = releases[oldest(fits)].minor;
  if (newest(fits) + 1 < releases.size()) dating.torch_max = releases[newest(fits)].minor;
  dating.dated = fits != all_releases(atlas);
}

namespace {

Set set_of(const Atlas& atlas, const std::vector<std::string>& minors) {
  return releases_where(
      atlas, [&](const AtlasRelease& r) { return std::ranges::find(minors, r.minor) != minors.end(); });
}

// The highest floor of all, and whatever else the first file says that says anything.
void take_facts(const Dating& file, Dating& together) {
  const auto floor = Version::parse(file.glibc_min), so_far = Version::parse(together.glibc_min);
  if (floor && (!so_far || *so_far < *floor)) together.glibc_min = file.glibc_min;
  if (together.string_abi.empty() || together.string_abi == "neutral") together.string_abi = file.string_abi;
  if (together.cuda_major.empty()) together.cuda_major = file.cuda_major;
  if (together.python_tag.empty()) together.python_tag = file.python_tag;
  together.torch_names += file.torch_names;
  together.unknown_names += file.unknown_names;
}

void take_evidence(const Dating& file, Dating& together) {
  for (const std::string& line : file.evidence) together.evidence.push_back(file.file + ": " + line);
}

// The first file that reaches no lower than the answer, and the first that reaches no higher.
void name_the_bounding_files(const Atlas& atlas, const std::vector<Dating>& files, Set fits,
                             Dating& together) {
  const Dating *lower = nullptr, *upper = nullptr;
  for (const Dating& file : files) {
    const Set own = set_of(atlas, file.releases);
    if (own == 0 || !file.dated) continue;
    if (lower == nullptr && oldest(own) == oldest(fits)) lower = &file;
    if (upper == nullptr && newest(own) == newest(fits)) upper = &file;
  }
  if (lower != nullptr) take_evidence(*lower, together);
  if (upper != nullptr && upper != lower) take_evidence(*upper, together);
}

}  // namespace

Dating date_together(const Atlas& atlas, const std::string& name, const std::vector<Dating>& files) {
  Dating together;
  together.file = name;
  Set fits = all_releases(atlas);
  const Dating* bracket = nullptr;  // of a file that fits no known release
  bool stable = true, any_fits = false;
  for (const Dating& file : files) {
    take_facts(file, together);
    if (file.torch_names == 0) continue;
    ++together.together;
    stable = stable && file.stable_abi;
    if (file.between_known_releases && bracket == nullptr) bracket = &file;
    if (file.releases.empty()) continue;
    any_fits = true;
    fits &= set_of(atlas, file.releases);
  }
  together.stable_abi = stable && together.together > 0;
  if (together.together == 0) {
    together.why_not_narrower = together.unknown_names == 0
                                    ? "none of its files uses a torch symbol"
                                    : "no known release exports any torch name that its files need";
  } else if (bracket != nullptr) {
    together.between_known_releases = together.dated = true;
    together.torch_min = bracket->torch_min;
    together.torch_max = bracket->torch_max;
    together.why_not_narrower = bracket->why_not_narrower;
    take_evidence(*bracket, together);
  } else if (!any_fits || fits == 0) {
    together.why_not_narrower = "its files were made for different releases of torch: no known one fits all";
    for (const Dating& file : files)
      if (const std::string words = dating_words(file); !words.empty())
        together.evidence.push_back(file.file + ": torch " + words);
  } else {
    take_bounds(atlas, fits, together);
    together.why_not_narrower = why_not_narrower(together);
    name_the_bounding_files(atlas, files, fits, together);
  }
  return together;
}

}  // namespace scankit
