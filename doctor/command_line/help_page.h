// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/command_line/command_table.h"

namespace scankit {

// What `--help` prints, at most 100 columns wide.
std::string help_page(const CommandRow& command);

// "--log cannot be used with --all or --python. ...": all pairs of options that exclude each other, each pair
// once, and the options that need another. "" where there is none.
std::string combinations(const CommandRow& command);

// "exit status: 0 healthy, 1 something is broken"; "" where none is special.
std::string statuses_line(const CommandRow& command);

}  // namespace scankit
