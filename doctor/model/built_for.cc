// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/built_for.h"

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
namespace {

std::string unknown_built_for_sentence(const BuiltFor& built_for) {
  if (built_for.torch_names == 0 && built_for.unknown_names == 0) return say("it uses no torch symbol");
  if (built_for.releases.empty()) return say("its torch release is unknown: {}", built_for.why_not_narrower);
  if (built_for.stable_abi)
    return say("it needs only torch's stable C interface, which every known release since {} exports",
               built_for.releases.front());
  return say("built for any torch from {} to {}: {}", built_for.releases.front(), built_for.releases.back(),
             built_for.why_not_narrower);
}

std::string abi_words(const std::string& abi) {
  if (abi == "old") return say("pre-CXX11 ABI");
  return abi == "new" ? say("CXX11 ABI") : "";
}

}  // namespace

Message torch_words(const BuiltFor& built_for) {
  if (!built_for.dated) return "";
  const std::string first = built_for.torch_min.value_or(""), last = built_for.torch_max.value_or("");
  if (built_for.between_known_releases)
    return message("a torch between {} and {} that is neither (a nightly, vendor or modified build)", first,
                   last);
  if (built_for.stable_abi && last.empty())
    return message("torch's stable C interface of {} or newer", first);
  if (first.empty()) return message("torch {} or older", last);
  if (last.empty()) return message("torch {} or newer", first);
  return first == last ? message("torch {}", first) : message("torch {} to {}", first, last);
}

std::string torch_minor(const std::string& version) {
  const auto dot = version.find('.');
  if (dot == std::string::npos || dot == 0) return "";
  const auto end = std::min(version.find_first_not_of("0123456789", dot + 1), version.size());
  return end == dot + 1 ? "" : version.substr(0, end);
}

std::string built_for_sentence(const BuiltFor& built_for, const std::string& installed) {
  if (built_for.file.empty()) return "";
  const Message range = torch_words(built_for);
  const std::string minor = torch_minor(installed);
  if (range.empty()) return unknown_built_for_sentence(built_for);
  const std::string abi = abi_words(built_for.string_abi);
  if (abi.empty() && minor.empty()) return say("built for {}", range);
  if (abi.empty()) return say("built for {}; {} is installed", range, minor);
  if (minor.empty()) return say("built for {}, {}", range, abi);
  return say("built for {}, {}; {} is installed", range, abi, minor);
}

}  // namespace scankit
