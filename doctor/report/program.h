// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// How the user starts this program: "scankit" from PATH, else the path that was typed, so that a printed
// command works in the same shell.
const std::string& scankit_program();
void set_scankit_program(const std::string& argv0);

}  // namespace scankit
