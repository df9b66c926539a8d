// SPDX-License-Identifier: Apache-2.0
// The distribution has no static libfmt: its formatting code is compiled into this one file, and everybody
// else includes the small fmt/core.h, which say() needs to check the braces at compile time.
#define FMT_HEADER_ONLY
#include "doctor/base/say.h"

#include <fmt/format.h>

namespace scankit {

std::string say_formatted(fmt::string_view english, fmt::format_args values) {
  return fmt::vformat(english, values);
}

}  // namespace scankit
