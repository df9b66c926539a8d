// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/date.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/mangling.h"
#include "doctor/torch_abi/names.h"
#include "doctor/torch_abi/narrow.h"
#include "doctor/torch_abi/release_sets.h"

namespace scankit {

std::string range_words(const Atlas& atlas, Set set) {
  if (set == 0) return "";
  const auto& releases = atlas.releases();
  const std::size_t first = oldest(set), last = newest(set);
  if (first == 0 && last + 1 == releases.size()) return std::string(kEveryRelease);
  if (last + 1 == releases.size()) return releases[first].minor + " or newer";
  if (first == 0) return releases[last].minor + " or older";
  return first == last ? releases[first].minor : releases[first].minor + "-" + releases[last].minor;
}

std::string runs_in_words(const Atlas& atlas, Set set) {
  std::string words;
  for (; set != 0; set &= ~lowest_run(set))
    words += (words.empty() ? "" : ", ") + range_words(atlas, lowest_run(set));
  return words;
}

namespace {

// The API's history of a name, whatever std::string it was built with: wheels of other channels carry the new
// one long before those of the index.
Set api_set(const Atlas& atlas, const std::string& name) {
  if (const auto known = atlas.find(name)) return known->api();
  if (const Set set = atlas.find_api(name); set != 0) return set;
  // A function that returns a string: its name in the old ABI is the same without the tag.
  std::string untagged = name;
  constexpr std::string_view kTag = "B5cxx11";
  for (auto at = untagged.find(kTag); at != std::string::npos; at = untagged.find(kTag, at))
    untagged.erase(at, kTag.size());
  if (untagged == name) return 0;
  const auto known = atlas.find(untagged);
  return known ? known->api() : 0;
}

// What is known of a file while its names are read.
struct Tally {
  Set fits = 0;
  bool any_cxx = false, any_c = false;
  unsigned unknown = 0;
  std::string first_unknown;
  struct Known {
    const std::string* name;
    Set set;
  };
  std::vector<Known> names;
};

void take_name(const Atlas& atlas, const std::string& name, Tally& tally) {
  (is_stable_c_name(name) ? tally.any_c : tally.any_cxx) = true;
  const Set set = api_set(atlas, name);
  if (set == 0) {
    if (tally.unknown++ == 0) tally.first_unknown = name;
    return;
  }
  tally.fits &= set;
  tally.names.push_back({&name, set});
}

Tally read_names(const Atlas& atlas, const DatingInput& input) {
  Tally tally;
  tally.fits = all_releases(atlas);
  for (const UndefinedSymbol& symbol : input.undefined)
    // Weak ones bind nobody: every extension has some that no torch ever exported.
    if (!symbol.weak && tells_a_release(symbol.name, symbol.version)) take_name(atlas, symbol.name, tally);
  return tally;
}

std::string exported_line(const Atlas& atlas, const Tally::Known& known) {
  return say("{}: exported by torch {}", demangle(*known.name), runs_in_words(atlas, known.set));
}

// A name that the release before the first lacks, and one that the release after the last lacks.
void name_the_bounds(const Atlas& atlas, const Tally& tally, Dating& dating) {
  const Tally::Known* told = nullptr;
  const auto tell = [&](Set outside) {
    const auto bound = std::ranges::find_if(
        tally.names, [&](const Tally::Known& known) { return (known.set & outside) == 0; });
    if (bound == tally.names.end() || told == &*bound) return;
    told = &*bound;
    dating.evidence.push_back(exported_line(atlas, *bound));
  };
  if (oldest(tally.fits) > 0) tell(Set{1} << (oldest(tally.fits) - 1));
  if (newest(tally.fits) + 1 < atlas.releases().size()) tell(Set{1} << (newest(tally.fits) + 1));
}

void name_the_unknown(const Tally& tally, Dating& dating) {
  if (tally.unknown == 0) return;
  dating.evidence.push_back(count_names(tally.unknown) +
                            " in torch's namespaces that no known release exports, such as " +
                            demangle(tally.first_unknown) + ": a library beside it, or another torch");
}

// The run of releases in the set that lies nearest to the one.
Set nearest_run(Set set, std::size_t release) {
  Set nearest = 0;
  const auto distance = [&](Set run) {
    if ((run >> release & 1) != 0) return std::size_t{0};
    return oldest(run) > release ? oldest(run) - release : release - newest(run);
  };
  for (; set != 0;) {
    const Set run = lowest_run(set);
    if (nearest == 0 || distance(run) < distance(nearest)) nearest = run;
    set &= ~run;
  }
  return nearest;
}

// No release exports all the names. The truth lies between where the first of them vanished and where the
// last one appeared, seen from the release that exports most: a name may have come and gone twice.
void take_bracket(const Atlas& atlas, const Tally& tally, Dating& dating) {
  std::size_t best = 0, most = 0;
  for (std::size_t release = 0; release < atlas.releases().size(); ++release) {
    const auto here = static_cast<std::size_t>(std::ranges::count_if(
        tally.names, [&](const Tally::Known& known) { return (known.set >> release & 1) != 0; }));
    if (here >= most) most = here, best = release;
  }
  const auto by_end = [&](const Tally::Known& a, const Tally::Known& b) {
    return newest(nearest_run(a.set, best)) < newest(nearest_run(b.set, best));
  };
  const auto by_start = [&](const Tally::Known& a, const Tally::Known& b) {
    return oldest(nearest_run(a.set, best)) < oldest(nearest_run(b.set, best));
  };
  const Tally::Known gone = *std::ranges::min_element(tally.names, by_end),
                     introduced = *std::ranges::max_element(tally.names, by_start);
  dating.between_known_releases = dating.dated = true;
  dating.torch_min = atlas.releases()[newest(nearest_run(gone.set, best))].minor;
  dating.torch_max = atlas.releases()[oldest(nearest_run(introduced.set, best))].minor;
  dating.evidence.push_back(exported_line(atlas, gone));
  dating.evidence.push_back(exported_line(atlas, introduced));
}

}  // namespace

Dating date_file(const Atlas& atlas, const DatingInput& input, const Atlas& header_lines) {
  Dating dating;
  dating.file = input.file;
  dating.string_abi = input.string_abi;
  dating.glibc_min = input.glibc_min;
  dating.cuda_major = input.cuda_major;
  dating.python_tag = input.tag;
  const Tally tally = read_names(atlas, input);
  dating.torch_names = static_cast<unsigned>(tally.names.size());
  dating.unknown_names = tally.unknown;
  dating.stable_abi = tally.any_c && !tally.any_cxx;
  if (atlas.releases().empty()) {
    dating.why_not_narrower = "the symbol atlas of this build cannot be read";
    return dating;
  }
  if (tally.names.empty()) {
    dating.why_not_narrower =
        tally.unknown == 0
            ? "the file uses no torch symbol"
            : "no known release exports any of its torch names, such as " + demangle(tally.first_unknown);
    return dating;
  }
  Set fits = tally.fits;
  if (fits == 0) {
    take_bracket(atlas, tally, dating);
    name_the_unknown(tally, dating);
  } else {
    name_the_bounds(atlas, tally, dating);
    name_the_unknown(tally, dating);
    narrow_by_headers(atlas, header_lines, input, fits, dating);
    narrow_by_python(atlas, input, fits, dating);
    narrow_by_strings(atlas, input, fits, dating);
    tell_pybind(atlas, input, fits, dating);
    take_bounds(atlas, fits, dating);
  }
  dating.why_not_narrower = why_not_narrower(dating);
  return dating;
}

Exporters exporters(const Atlas& atlas, const std::string& mangled) {
  if (const auto known = atlas.find(mangled))
    return {runs_in_words(atlas, known->exact), runs_in_words(atlas, known->twin)};
  return {"", runs_in_words(atlas, api_set(atlas, mangled))};
}

std::string dating_words(const Dating& dating) {
  if (!dating.dated) return "";
  if (dating.between_known_releases) return "between " + *dating.torch_min + " and " + *dating.torch_max;
  if (!dating.torch_min) return *dating.torch_max + " or older";
  if (!dating.torch_max) return *dating.torch_min + " or newer";
  return *dating.torch_min == *dating.torch_max ? *dating.torch_min
                                                : *dating.torch_min + "-" + *dating.torch_max;
}

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
