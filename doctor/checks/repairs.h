// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/finding.h"

// Repairs that several checks offer. The first one that has a command is what the report ends with.
namespace scankit {

// scankit's own module where it carries one, before what is said otherwise.
std::vector<Fix> module_or(const Snapshot& snapshot, const std::string& module, Fix otherwise);

// An advice that ends in a line for the user's own shell: report/fixes.cc prints it as the command.
Fix shell_advice(const std::string& words, const std::string& command);

// "export NAME=VALUE", quoted where the shell needs it.
std::string export_line(const std::string& name, const std::string& value);

// The line for the shell that replaces PATTERN (of sed) in the line of the fact.
std::string edit_command(const SourceTree& tree, const SourceFact& fact, const std::string& pattern,
                         const std::string& replacement);

}  // namespace scankit
