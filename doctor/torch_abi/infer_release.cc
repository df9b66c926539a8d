// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/infer_release.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "doctor/base/message.h"
#include "doctor/base/version.h"
#include "doctor/elf/mangling.h"
#include "doctor/torch_abi/symbol_index.h"

// A release fits where it exports every strong symbol of torch that the file needs. narrow.cc then removes
// releases by other facts. Where no known release fits, the answer is a bracket: two releases that the
// file's own torch lies between (take_bracket). Each step adds the evidence for what it concluded.
namespace scankit::torch_abi {

std::string range_words(const SymbolIndex& symbol_index, Set set) {
  if (set == 0) return "";
  const auto& releases = symbol_index.releases();
  const std::size_t first = oldest(set), last = newest(set);
  if (first == 0 && last + 1 == releases.size()) return std::string(kEveryRelease);
  if (last + 1 == releases.size()) return releases[first].minor + " or newer";
  if (first == 0) return releases[last].minor + " or older";
  return first == last ? releases[first].minor : releases[first].minor + "-" + releases[last].minor;
}

std::string runs_in_words(const SymbolIndex& symbol_index, Set set) {
  std::string words;
  for (; set != 0; set &= ~lowest_run(set))
    words += (words.empty() ? "" : ", ") + range_words(symbol_index, lowest_run(set));
  return words;
}

namespace {

// The API's history of a name, whatever std::string it was built with: wheels of other channels carry the new
// one long before those of the index.
Set api_set(const SymbolIndex& symbol_index, const std::string& name) {
  if (const auto known = symbol_index.find(name)) return known->api();
  if (const Set set = symbol_index.find_api(name); set != 0) return set;
  // A function that returns a string: its name in the old ABI is the same without the tag.
  std::string untagged = name;
  constexpr std::string_view kTag = "B5cxx11";
  for (auto at = untagged.find(kTag); at != std::string::npos; at = untagged.find(kTag, at))
    untagged.erase(at, kTag.size());
  if (untagged == name) return 0;
  const auto known = symbol_index.find(untagged);
  return known ? known->api() : 0;
}

// What is known of a file while its names are read. `fits` has the releases that export all of the names so
// far; `names` has those that some release exports, as pointers into BuiltForInput::undefined.
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

// A name that no release exports does not narrow: it may belong to a library that was built together
// with torch.
void take_name(const SymbolIndex& symbol_index, const std::string& name, Tally& tally) {
  (is_stable_c_name(name) ? tally.any_c : tally.any_cxx) = true;
  const Set set = api_set(symbol_index, name);
  if (set == 0) {
    if (tally.unknown++ == 0) tally.first_unknown = name;
    return;
  }
  tally.fits &= set;
  tally.names.push_back({&name, set});
}

Tally read_names(const SymbolIndex& symbol_index, const BuiltForInput& input) {
  Tally tally;
  tally.fits = all_releases(symbol_index);
  for (const elf::UndefinedSymbol& symbol : input.undefined)
    // Weak ones bind nobody: every extension has some that no torch ever exported.
    if (!symbol.weak && tells_a_release(symbol.name, symbol.version))
      take_name(symbol_index, symbol.name, tally);
  return tally;
}

// "at::empty(...): exported by torch 2.1-2.3".
Message exported_line(const SymbolIndex& symbol_index, const Tally::Known& known) {
  return message("{}: exported by torch {}", elf::demangle(*known.name),
                 runs_in_words(symbol_index, known.set));
}

// Adds the evidence for both ends: a name that the release before the first lacks, and one that the release
// after the last lacks. `told` keeps one name from being told for both.
void name_the_bounds(const SymbolIndex& symbol_index, const Tally& tally, BuiltFor& built_for) {
  const Tally::Known* told = nullptr;
  const auto tell = [&](Set outside) {
    const auto bound = std::ranges::find_if(
        tally.names, [&](const Tally::Known& known) { return (known.set & outside) == 0; });
    if (bound == tally.names.end() || told == &*bound) return;
    told = &*bound;
    built_for.evidence.push_back(exported_line(symbol_index, *bound));
  };
  if (oldest(tally.fits) > 0) tell(Set{1} << (oldest(tally.fits) - 1));
  if (newest(tally.fits) + 1 < symbol_index.releases().size()) tell(Set{1} << (newest(tally.fits) + 1));
}

void name_the_unknown(const Tally& tally, BuiltFor& built_for) {
  if (tally.unknown == 0) return;
  built_for.evidence.push_back(
      message_n(tally.unknown,
                "{} symbol in torch's namespaces that no known release exports, such "
                "as {}: another library, or another torch",
                "{} symbols in torch's namespaces that no known release exports, such "
                "as {}: another library, or another torch",
                tally.unknown, elf::demangle(tally.first_unknown)));
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
void take_bracket(const SymbolIndex& symbol_index, const Tally& tally, BuiltFor& built_for) {
  std::size_t best = 0, most = 0;
  for (std::size_t release = 0; release < symbol_index.releases().size(); ++release) {
    const auto here = static_cast<std::size_t>(std::ranges::count_if(
        tally.names, [&](const Tally::Known& known) { return (known.set >> release & 1) != 0; }));
    if (here >= most) most = here, best = release;  // a tie goes to the newer release
  }
  const auto by_end = [&](const Tally::Known& a, const Tally::Known& b) {
    return newest(nearest_run(a.set, best)) < newest(nearest_run(b.set, best));
  };
  const auto by_start = [&](const Tally::Known& a, const Tally::Known& b) {
    return oldest(nearest_run(a.set, best)) < oldest(nearest_run(b.set, best));
  };
  const Tally::Known gone = *std::ranges::min_element(tally.names, by_end),
                     introduced = *std::ranges::max_element(tally.names, by_start);
  built_for.between_known_releases = built_for.dated = true;
  built_for.torch_min = symbol_index.releases()[newest(nearest_run(gone.set, best))].minor;
  built_for.torch_max = symbol_index.releases()[oldest(nearest_run(introduced.set, best))].minor;
  built_for.evidence.push_back(exported_line(symbol_index, gone));
  built_for.evidence.push_back(exported_line(symbol_index, introduced));
}

}  // namespace

// The order matters for the evidence: name_the_bounds() explains the range that the names alone give, so it
// comes before anything narrows further.
BuiltFor date_file(const SymbolIndex& symbol_index, const BuiltForInput& input,
                   const SymbolIndex& header_lines) {
  BuiltFor built_for;
  built_for.file = input.file;
  built_for.string_abi = input.string_abi;
  built_for.glibc_min = input.glibc_min;
  built_for.cuda_major = input.cuda_major;
  built_for.python_tag = input.tag;
  const Tally tally = read_names(symbol_index, input);
  built_for.torch_names = static_cast<unsigned>(tally.names.size());
  built_for.unknown_names = tally.unknown;
  built_for.stable_abi = tally.any_c && !tally.any_cxx;
  if (symbol_index.releases().empty()) {
    built_for.why_not_narrower = message("the symbol index of this build cannot be read");
    return built_for;
  }
  // Before the bracket, which needs at least one known name.
  if (tally.names.empty()) {
    built_for.why_not_narrower = tally.unknown == 0
                                     ? message("the file uses no torch symbol")
                                     : message("no known release exports any of its torch names, such as {}",
                                               elf::demangle(tally.first_unknown));
    return built_for;
  }
  Set fits = tally.fits;
  if (fits == 0) {
    take_bracket(symbol_index, tally, built_for);
    name_the_unknown(tally, built_for);
  } else {
    name_the_bounds(symbol_index, tally, built_for);
    name_the_unknown(tally, built_for);
    narrow_by_headers(symbol_index, header_lines, input, fits, built_for);
    narrow_by_python(symbol_index, input, fits, built_for);
    narrow_by_strings(symbol_index, input, fits, built_for);
    tell_pybind(symbol_index, input, fits, built_for);
    take_bounds(symbol_index, fits, built_for);
  }
  built_for.why_not_narrower = why_not_narrower(built_for);
  return built_for;
}

// An index that has the name knows both spellings. Otherwise the releases are found by its demangled form,
// which says nothing about how their strings are spelled.
Exporters exporters(const SymbolIndex& symbol_index, const std::string& mangled) {
  if (const auto known = symbol_index.find(mangled))
    return {runs_in_words(symbol_index, known->exact), runs_in_words(symbol_index, known->twin)};
  return {"", runs_in_words(symbol_index, api_set(symbol_index, mangled))};
}

std::string built_for_words(const BuiltFor& built_for) {
  if (!built_for.dated) return "";
  if (built_for.between_known_releases)
    return "between " + *built_for.torch_min + " and " + *built_for.torch_max;
  if (!built_for.torch_min) return *built_for.torch_max + " or older";
  if (!built_for.torch_max) return *built_for.torch_min + " or newer";
  return *built_for.torch_min == *built_for.torch_max ? *built_for.torch_min
                                                      : *built_for.torch_min + "-" + *built_for.torch_max;
}

// Goes by the most specific reason. The sentence follows the range in the report.
Message why_not_narrower(const BuiltFor& built_for) {
  if (built_for.releases.size() == 1 && built_for.torch_min && built_for.torch_max) return "";
  if (built_for.stable_abi)
    return message("it needs only torch's stable C interface, which works across releases");
  if (built_for.between_known_releases)
    return message(
        "no known release exports all its symbols: built for a nightly, vendor or modified torch "
        "between these");
  const unsigned n = built_for.torch_names;
  if (n > 10) return message("it needs {} symbols of torch, which each of these releases exports", n);
  return message_n(n, "it needs only {} symbol of torch, which each of these releases exports",
                   "it needs only {} symbols of torch, which each of these releases exports", n);
}

void take_bounds(const SymbolIndex& symbol_index, Set fits, BuiltFor& built_for) {
  const auto& releases = symbol_index.releases();
  for (std::size_t i = 0; i < releases.size(); ++i)
    if ((fits >> i & 1) != 0) built_for.releases.push_back(releases[i].minor);
  if (fits == 0) return;
  if (oldest(fits) > 0) built_for.torch_min = releases[oldest(fits)].minor;
  if (newest(fits) + 1 < releases.size()) built_for.torch_max = releases[newest(fits)].minor;
  built_for.dated = fits != all_releases(symbol_index);
}

namespace {

Set set_of(const SymbolIndex& symbol_index, const std::vector<std::string>& minors) {
  return releases_where(symbol_index, [&](const IndexedRelease& r) {
    return std::ranges::find(minors, r.minor) != minors.end();
  });
}

// The highest floor of all, and whatever else the first file says that says anything.
void take_facts(const BuiltFor& file, BuiltFor& together) {
  const auto floor = Version::parse(file.glibc_min), so_far = Version::parse(together.glibc_min);
  if (floor && (!so_far || *so_far < *floor)) together.glibc_min = file.glibc_min;
  if (together.string_abi.empty() || together.string_abi == "neutral") together.string_abi = file.string_abi;
  if (together.cuda_major.empty()) together.cuda_major = file.cuda_major;
  if (together.python_tag.empty()) together.python_tag = file.python_tag;
  together.torch_names += file.torch_names;
  together.unknown_names += file.unknown_names;
}

void take_evidence(const BuiltFor& file, BuiltFor& together) {
  for (const Message& line : file.evidence) together.evidence.push_back(message("{}: {}", file.file, line));
}

// The first file that reaches no lower than the answer, and the first that reaches no higher.
void name_the_bounding_files(const SymbolIndex& symbol_index, const std::vector<BuiltFor>& files, Set fits,
                             BuiltFor& together) {
  const BuiltFor *lower = nullptr, *upper = nullptr;
  for (const BuiltFor& file : files) {
    const Set own = set_of(symbol_index, file.releases);
    if (own == 0 || !file.dated) continue;
    if (lower == nullptr && oldest(own) == oldest(fits)) lower = &file;
    if (upper == nullptr && newest(own) == newest(fits)) upper = &file;
  }
  if (lower != nullptr) take_evidence(*lower, together);
  if (upper != nullptr && upper != lower) take_evidence(*upper, together);
}

}  // namespace

BuiltFor date_together(const SymbolIndex& symbol_index, const std::string& name,
                       const std::vector<BuiltFor>& files) {
  BuiltFor together;
  together.file = name;
  Set fits = all_releases(symbol_index);
  const BuiltFor* bracket = nullptr;  // of a file that fits no known release
  bool stable = true, any_fits = false;
  for (const BuiltFor& file : files) {
    take_facts(file, together);
    if (file.torch_names == 0) continue;
    ++together.together;
    stable = stable && file.stable_abi;
    if (file.between_known_releases && bracket == nullptr) bracket = &file;
    if (file.releases.empty()) continue;
    any_fits = true;
    fits &= set_of(symbol_index, file.releases);
  }
  together.stable_abi = stable && together.together > 0;
  if (together.together == 0) {
    together.why_not_narrower = together.unknown_names == 0
                                    ? message("none of its files uses a torch symbol")
                                    : message("no known release exports any torch name that its files need");
  } else if (bracket != nullptr) {
    together.between_known_releases = together.dated = true;
    together.torch_min = bracket->torch_min;
    together.torch_max = bracket->torch_max;
    together.why_not_narrower = bracket->why_not_narrower;
    take_evidence(*bracket, together);
  } else if (!any_fits || fits == 0) {
    together.why_not_narrower =
        message("its files were built for different releases of torch: no known one matches all");
    for (const BuiltFor& file : files)
      if (const std::string words = built_for_words(file); !words.empty())
        together.evidence.push_back(message("{}: torch {}", file.file, words));
  } else {
    take_bounds(symbol_index, fits, together);
    together.why_not_narrower = why_not_narrower(together);
    name_the_bounding_files(symbol_index, files, fits, together);
  }
  return together;
}

}  // namespace scankit::torch_abi
