// SPDX-License-Identifier: Apache-2.0
#include "doctor/matrix/axes.h"

#include <algorithm>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit {
namespace {

constexpr std::string_view kTo = "..";
constexpr unsigned kOldestGlibc = 5, kNewestGlibc = 43;  // 2.5: manylinux1 (PEP 513)

// "2.6" of "2.6.1"; whole where it has no second dot.
std::string minor_of(const std::string& value) {
  const auto first = value.find('.');
  const auto second = first == std::string::npos ? first : value.find('.', first + 1);
  return value.substr(0, second);
}

Error not_known(std::string_view option, const std::string& value, const std::vector<std::string>& known) {
  return {Errc::InvalidArgument, message("{} {}: this value is not known", option, printable(value)),
          message("the known values are {}; a range is written {}..{}", join(known), known.front(),
                  known.back())};
}

}  // namespace

Result<std::vector<std::string>> values_of_axis(std::string_view option, const std::string& text,
                                                const std::vector<std::string>& known) {
  if (known.empty())
    return Error{Errc::Malformed, message("{}: the tables of this build cannot be read", option), {}};
  const auto place_of = [&](const std::string& value) {
    return std::ranges::find(known, minor_of(value)) - known.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(known.size());
  std::set<std::ptrdiff_t> chosen;
  for (const std::string& part : split(text, ",")) {
    const auto to = part.find(kTo);
    std::string low = part.substr(0, to), high = to == std::string::npos ? low : part.substr(to + kTo.size());
    if (part == "all")
      low = high = "";
    else if (part.empty() || part == kTo)
      return not_known(option, part, known);
    const auto from = low.empty() ? 0 : place_of(low), until = high.empty() ? end - 1 : place_of(high);
    if (from == end) return not_known(option, low, known);
    if (until == end) return not_known(option, high, known);
    if (from > until)
      return Error{Errc::InvalidArgument,
                   message("{} {}: the range has its ends exchanged", option, printable(part)),
                   message("write {}..{}", high, low)};
    for (auto i = from; i <= until; ++i) chosen.insert(i);
  }
  std::vector<std::string> values;
  for (const auto i : chosen) values.push_back(known[static_cast<std::size_t>(i)]);
  return values;
}

bool is_python_axis(std::string_view text) {
  return text == "all" || (text.find_first_not_of("0123456789.,") == std::string_view::npos &&
                           text.find_first_of("0123456789") != std::string_view::npos);
}

std::vector<std::string> known_torch_releases() {
  std::vector<std::string> known;
  for (const IndexedRelease& release : SymbolIndex::built_in().releases()) known.push_back(release.minor);
  return known;
}

// Of " cp39 cp313t ": free-threaded ones are left out, of which the index knows too few.
std::vector<std::string> known_pythons() {
  std::set<unsigned> minors;
  for (const IndexedRelease& release : SymbolIndex::built_in().releases())
    for (const std::string& tag : split_nonempty(release.python_tags, " "))
      if (tag.starts_with("cp3") && tag.find_first_not_of("0123456789", 2) == std::string::npos)
        minors.insert(static_cast<unsigned>(std::stoul(tag.substr(3))));
  std::vector<std::string> known;
  for (const unsigned minor : minors) known.push_back("3." + std::to_string(minor));
  return known;
}

// Source: the suffixes (+cu118) of the wheels that the PyTorch project lists for torch 1.11 and newer.
std::vector<std::string> known_cuda_releases() {
  return {"10.2", "11.3", "11.5", "11.6", "11.7", "11.8", "12.1", "12.4", "12.6", "12.8", "12.9", "13.0"};
}

std::vector<std::string> known_glibcs() {
  std::vector<std::string> known;
  for (unsigned minor = kOldestGlibc; minor <= kNewestGlibc; ++minor)
    known.push_back("2." + std::to_string(minor));
  return known;
}

// Source: `nvcc --list-gpu-arch` of CUDA 12.9 and 13.0.
std::vector<std::string> known_gpus() {
  return {"sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62",  "sm_70",  "sm_72",  "sm_75",  "sm_80",
          "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
}

}  // namespace scankit
