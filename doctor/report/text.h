// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/model/finding.h"

namespace scankit {

struct TextStyle {
  bool color = false;
  bool ascii = true;     // where the locale is not UTF-8
  bool verbose = false;  // every symbol, every piece of evidence, every passed check
  bool quiet = false;    // the verdict and the command alone
};

using Environment = std::function<std::optional<std::string>(std::string_view)>;
bool locale_is_utf8(const Environment& variables);
// `choice` is "auto", "always" or "never"; NO_COLOR (no-color.org) rules "auto".
bool wants_color(std::string_view choice, bool is_terminal, const Environment& variables);

// The report for a human: what was looked at, the findings with the root first, what was not checked, the
// verdict, and as the last line the command that repairs it, where there is one. Same
// report, same bytes.
std::string doctor_text(const Report& report, const TextStyle& style);

}  // namespace scankit
