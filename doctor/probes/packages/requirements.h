// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"

// Dependency specifiers (PEP 508) as METADATA has them, as far as one needs them to say what is missing: the
// name, the extras, the marker and the versions that will do.

namespace scankit::probes {

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

// Those of modules_asked that are packages or files of Python, by sys.path and the editable finders. A name
// of which import takes a compiled file (so_far.extensions) is none.
std::vector<AskedPackage> find_asked_packages(const Host& host, const Snapshot& so_far);

// Whether each of `names` is a module on sys.path, or an installed distribution whose files are there. Needs
// the Python and the distributions of `so_far`.
std::vector<Requirement> probe_required(const Host& host, const Snapshot& so_far,
                                        const std::vector<std::string>& names);
// The same from the facts of a stored snapshot, which lists no modules: what is not seen in it is "not-read".
std::vector<Requirement> required_in(const Snapshot& snapshot, const std::vector<std::string>& names);

// Where nobody could look.
std::vector<Requirement> unread_requirements(const std::vector<std::string>& names);

// What torch and the packages around the modules ask for by their metadata, directly or through what they ask
// for, and what is really not there. Reads `python`, `distributions` and `packages` of the snapshot. CUDA
// libraries and triton are left out: they are torch's own parts, and other facts say more of them.
Probed<std::vector<MissingRequirement>> probe_requirements(const Host& host, const Snapshot& so_far);

}  // namespace scankit::probes
