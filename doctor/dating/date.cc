// SPDX-License-Identifier: Apache-2.0
#include "doctor/dating/date.h"

#include <algorithm>
#include <bit>

#include "doctor/dating/names.h"
#include "doctor/elf/mangling.h"

namespace scankit {
namespace {

using Set = std::uint64_t;

Set all_releases(const Atlas& atlas) {
  const std::size_t count = atlas.releases().size();
  return count >= 64 ? ~Set{0} : (Set{1} << count) - 1;
}
std::size_t oldest(Set set) { return static_cast<std::size_t>(std::countr_zero(set)); }
std::size_t newest(Set set) { return 63 - static_cast<std::size_t>(std::countl_zero(set)); }

template <class Predicate>
Set releases_where(const Atlas& atlas, Predicate fits) {
  Set set = 0;
  for (std::size_t i = 0; i < atlas.releases().size(); ++i)
    if (fits(atlas.releases()[i])) set |= Set{1} << i;
  return set;
}

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

// "2.1-2.3", open where it touches the oldest or the newest release that we know.
std::string range_words(const Atlas& atlas, Set set) {
  if (set == 0) return "";
  const auto& releases = atlas.releases();
  const std::size_t first = oldest(set), last = newest(set);
  if (first == 0 && last + 1 == releases.size()) return "every known release";
  if (last + 1 == releases.size()) return releases[first].minor + " or newer";
  if (first == 0) return releases[last].minor + " or older";
  return first == last ? releases[first].minor : releases[first].minor + "-" + releases[last].minor;
}

// What is known of a file while its names are read.
struct Tally {
  Set fits = 0;
  bool any_cxx = false, any_c = false, python_names = false;
  unsigned known = 0, unknown = 0;
  std::string first_unknown;
  // The names that bound the answer: introduced last, and gone first.
  std::string introduced, gone;
  Set introduced_set = 0, gone_set = 0;
};

void take_name(const Atlas& atlas, const std::string& name, Tally& tally) {
  (is_stable_c_name(name) ? tally.any_c : tally.any_cxx) = true;
  if (name.starts_with("THP") || outermost_scope(name) == "pybind11") tally.python_names = true;
  const Set set = api_set(atlas, name);
  if (set == 0) {
    if (tally.unknown++ == 0) tally.first_unknown = name;
    return;
  }
  ++tally.known;
  tally.fits &= set;
  if (tally.introduced_set == 0 || oldest(set) > oldest(tally.introduced_set))
    tally.introduced = name, tally.introduced_set = set;
  if (tally.gone_set == 0 || newest(set) < newest(tally.gone_set)) tally.gone = name, tally.gone_set = set;
}

Tally read_names(const Atlas& atlas, const DatingInput& input) {
  Tally tally;
  tally.fits = all_releases(atlas);
  for (const UndefinedSymbol& symbol : input.undefined)
    // Weak ones bind nobody: every extension has some that no torch ever exported.
    if (!symbol.weak && tells_a_release(symbol.name, symbol.version)) take_name(atlas, symbol.name, tally);
  return tally;
}

// A fact that is not a name narrows only where something is left: it may be true of a build of another
// channel.
void narrow(Set& fits, Set by, const std::string& line, Dating& dating) {
  if (fits == 0 || (fits & by) == fits) return;
  if ((fits & by) == 0) {
    dating.evidence.push_back(
        line + "; no release of the package index has both: built for a torch of another channel");
    return;
  }
  fits &= by;
  dating.evidence.push_back(line);
}

// The index's wheels change their std::string at one release; the last one before it exists with both.
void narrow_by_strings(const Atlas& atlas, const DatingInput& input, Set& fits, Dating& dating) {
  if (input.string_abi != "old" && input.string_abi != "new") return;
  const bool modern = input.string_abi == "new";
  Set by = releases_where(atlas, [&](const AtlasRelease& r) { return r.new_strings == modern; });
  if (modern && by != 0 && oldest(by) > 0) by |= Set{1} << (oldest(by) - 1);
  narrow(fits, by,
         "it is built with the " + input.string_abi + " std::string, as torch " + range_words(atlas, by),
         dating);
}

// "cp311" of "cpython-311-x86_64-linux-gnu", "cp313t" of "cpython-313t-...".
std::string python_of(const std::string& tag) {
  constexpr std::string_view kStart = "cpython-";
  if (!tag.starts_with(kStart)) return "";
  const auto end = tag.find('-', kStart.size());
  return "cp" + tag.substr(kStart.size(), end == std::string::npos ? end : end - kStart.size());
}

void narrow_by_python(const Atlas& atlas, const DatingInput& input, const Tally& tally, Set& fits,
                      Dating& dating) {
  if (const std::string python = python_of(input.tag); !python.empty()) {
    const Set by = releases_where(atlas, [&](const AtlasRelease& r) {
      return r.python_tags.find(" " + python + " ") != std::string::npos;
    });
    if (by != 0) narrow(fits, by, "torch " + range_words(atlas, by) + " has wheels for " + python, dating);
  }
  // Only who binds Python through torch's headers has torch's pybind11. Number 5 is 4 on Python 3.12 and
  // later (pybind11 2.x, detail/internals.h).
  constexpr std::string_view kMark = "__pybind11_internals_v";
  if (!tally.python_names || !input.pybind_internals.starts_with(kMark)) return;
  const unsigned long number = std::strtoul(input.pybind_internals.c_str() + kMark.size(), nullptr, 10);
  const Set by = releases_where(
      atlas, [&](const AtlasRelease& r) { return r.pybind_internals == (number == 5 ? 4 : number); });
  if (by != 0)
    narrow(fits, by,
           "its pybind11 internals are number " + std::to_string(number) + ", as in torch " +
               range_words(atlas, by),
           dating);
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

void name_the_bounds(const Atlas& atlas, const Tally& tally, Dating& dating) {
  const auto line = [&](const std::string& name, Set set) {
    return demangle(name) + ": exported by torch " + range_words(atlas, set);
  };
  const bool lower = oldest(tally.introduced_set) > 0,
             upper = newest(tally.gone_set) + 1 < atlas.releases().size();
  if (lower) dating.evidence.push_back(line(tally.introduced, tally.introduced_set));
  if (upper && (tally.gone != tally.introduced || !lower))
    dating.evidence.push_back(line(tally.gone, tally.gone_set));
  if (tally.unknown > 0)
    dating.evidence.push_back(count_names(tally.unknown) +
                              " in torch's namespaces that no known release exports, such as " +
                              demangle(tally.first_unknown) + ": a library beside it, or another torch");
}

}  // namespace

Dating date_file(const Atlas& atlas, const DatingInput& input) {
  Dating dating;
  dating.file = input.file;
  dating.string_abi = input.string_abi;
  dating.glibc_min = input.glibc_min;
  dating.cuda_major = input.cuda_major;
  dating.python_tag = input.tag;
  const Tally tally = read_names(atlas, input);
  dating.torch_names = tally.known;
  dating.unknown_names = tally.unknown;
  dating.stable_abi = tally.any_c && !tally.any_cxx;
  if (atlas.releases().empty()) {
    dating.why_not_narrower = "the symbol atlas of this build cannot be read";
    return dating;
  }
  if (tally.known == 0) {
    dating.why_not_narrower =
        tally.unknown == 0
            ? "the file uses no torch symbol"
            : "no known release exports any of its torch names, such as " + demangle(tally.first_unknown);
    return dating;
  }
  Set fits = tally.fits;
  name_the_bounds(atlas, tally, dating);
  if (fits == 0) {
    // The truth lies between where the first name vanished and where the last one appeared.
    std::size_t from = newest(tally.gone_set), to = oldest(tally.introduced_set);
    if (from > to) std::swap(from, to);
    dating.between_known_releases = dating.dated = true;
    dating.torch_min = atlas.releases()[from].minor;
    dating.torch_max = atlas.releases()[to].minor;
  } else {
    narrow_by_strings(atlas, input, fits, dating);
    narrow_by_python(atlas, input, tally, fits, dating);
    take_bounds(atlas, fits, dating);
  }
  dating.why_not_narrower = why_not_narrower(dating);
  return dating;
}

Dating date_together(const Atlas& atlas, const std::string& name, const std::vector<Dating>& files) {
  Dating together;
  together.file = name;
  Set fits = all_releases(atlas);
  unsigned counted = 0;
  bool stable = true;
  for (const Dating& file : files) {
    if (file.torch_names == 0 || file.releases.empty()) continue;
    ++counted;
    fits &= releases_where(atlas, [&](const AtlasRelease& r) {
      return std::ranges::find(file.releases, r.minor) != file.releases.end();
    });
    stable = stable && file.stable_abi;
    together.torch_names += file.torch_names;
    together.unknown_names += file.unknown_names;
    if (together.string_abi.empty() || together.string_abi == "neutral")
      together.string_abi = file.string_abi;
    if (together.cuda_major.empty()) together.cuda_major = file.cuda_major;
    if (together.python_tag.empty()) together.python_tag = file.python_tag;
    if (const std::string words = dating_words(file); !words.empty())
      together.evidence.push_back(file.file + ": torch " + words);
  }
  together.stable_abi = stable && counted > 0;
  if (counted == 0) {
    together.why_not_narrower = "none of its files fits a known release of torch";
  } else if (fits == 0) {
    together.why_not_narrower = "its files were made for different releases of torch: no known one fits all";
  } else {
    take_bounds(atlas, fits, together);
    together.why_not_narrower = why_not_narrower(together);
  }
  return together;
}

std::string exported_by(const Atlas& atlas, const std::string& mangled) {
  return range_words(atlas, api_set(atlas, mangled));
}

std::string dating_words(const Dating& dating) {
  if (!dating.dated) return "";
  if (dating.between_known_releases) return "between " + *dating.torch_min + " and " + *dating.torch_max;
  if (!dating.torch_min) return *dating.torch_max + " or older";
  if (!dating.torch_max) return *dating.torch_min + " or newer";
  return *dating.torch_min == *dating.torch_max ? *dating.torch_min
                                                : *dating.torch_min + "-" + *dating.torch_max;
}

}  // namespace scankit
