// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

// "tokenizers (>=0.20,<0.21) ; extra == 'torch'" of a METADATA file (PEP 508).
struct RequirementLine {
  std::string name, specifier, marker;  // "tokenizers", ">=0.20,<0.21", "extra == 'torch'"
  std::vector<std::string> extras;      // of the distribution that is asked for
  std::string text() const { return name + specifier; }
};
std::optional<RequirementLine> parse_requirement(std::string_view line);

// Whether the marker holds for this Python with these extras.
// Nothing where it asks for what is not known here.
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
