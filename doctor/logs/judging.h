// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/logs/classify.h"

// What the classifiers of this directory share.
namespace scankit {

inline bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}
inline bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

// Shortens the judgements below. `sure` is "certain", "likely" or "possible"; `settles` is what to look
// at to be certain, "" if nothing is left to doubt.
inline Judged verdict(std::string cause, std::string sure, Message meaning, Message settles = {},
                      std::vector<std::string> alternatives = {}) {
  return {std::move(cause),   std::move(sure),         std::move(meaning),
          std::move(settles), std::move(alternatives), {}};
}

}  // namespace scankit
