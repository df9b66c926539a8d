// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/knowledge/known_packages.h"
#include "doctor/model/finding.h"

// Repairs that several checks offer. The first one with a command becomes the last line of the report.
namespace scankit::checks {

// scankit's own module if it carries one of that name, followed by `otherwise`.
std::vector<Fix> module_or(const Snapshot& snapshot, const std::string& module, Fix otherwise);

// Advice with a line for the user's own shell, which report/fixes.cc prints as the command.
Fix shell_advice(const Message& words, const std::string& command);

// "export NAME=VALUE", quoted where the shell needs it.
std::string export_line(const std::string& name, const std::string& value);

// LD_LIBRARY_PATH with the folder before what it has now.
Fix first_on_library_path(const Snapshot& snapshot, const std::string& folder);

// A module of Python's own that this Python lacks. No index has it: a distribution ships it as a package of its own, or
// Python was built without it.
Fix install_part_of_python(const std::string& module, const knowledge::PartOfPython& part);

// Starts Python with an executable stack. Tunables that are set already stay; colons separate them.
Fix executable_stack_from_the_start(const Snapshot& snapshot);

// The user's own `pip install ...` or `uv pip install ...` once more with --no-build-isolation, after what most
// builds of extensions need and nobody installs for them then, into the same place and from the same index. "" for
// any other command and where it has the option.
std::string without_isolation(const std::vector<std::string>& words);

// A sed command that replaces `pattern` (a basic regular expression) on the line of the fact, or in the
// whole file if the line is not known.
std::string edit_command(const SourceTree& tree, const SourceFact& fact, const std::string& pattern,
                         const std::string& replacement);

}  // namespace scankit::checks
