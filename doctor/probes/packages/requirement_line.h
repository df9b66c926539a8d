// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/snapshot.h"

// Dependency specifiers (PEP 508) as METADATA has them, as far as one needs them to say what is missing: the
// name, the extras and the marker are read; whether a version fits the specifier is not decided here.
namespace scankit {

// "tokenizers (>=0.20,<0.21) ; extra == 'torch'" of a METADATA file (PEP 508).
struct RequirementLine {
  std::string name, specifier, marker;  // "tokenizers", ">=0.20,<0.21", "extra == 'torch'"
  std::vector<std::string> extras;      // of the distribution that is asked for
  // What an installer takes, without extras and marker: "tokenizers>=0.20,<0.21".
  std::string text() const { return name + specifier; }
};
// Nothing where the line does not start with a name or a bracket is not closed.
std::optional<RequirementLine> parse_requirement(std::string_view line);

// Whether the marker is true for this Python with these extras. Nothing where it asks for what is not known
// here, or is malformed; an empty marker is true. `machine` is platform_machine, "" where it is not known.
std::optional<bool> marker_holds(std::string_view marker, const Python& python, const std::string& machine,
                                 const std::vector<std::string>& extras);

// The Requires-Dist lines of a METADATA or PKG-INFO file, up to the description.
std::vector<RequirementLine> requirement_lines(std::string_view metadata);

// What is imported of a distribution that is not here to ask: PyYAML is `yaml`. `guessed`: by its own name.
struct ImportName {
  std::string package;
  bool guessed = false;
};
ImportName import_name_of(std::string_view distribution);

}  // namespace scankit
