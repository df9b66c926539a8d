// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace scankit {

// "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);" of a catalogue's header: the form for `n`.
// Nothing where the rule cannot be read or names a form that there is not.
std::optional<std::size_t> plural_form(std::string_view header, std::size_t n);

}  // namespace scankit
