// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

// Names that releases of torch gained or removed, where the table of releases (knowledge::releases_of_name)
// has no row: those of compiled code, and those that are asked for in changing modules. A log shows only that one is
// missing; which of the two happened says whether the installed release is too old or too new for the program.
namespace scankit::logs {

// Names that torch gained in a release from which projects then took them: without them torch is too old.
bool came_with_newer_torch(std::string_view name);
// Names without which what was imported is no torch.
bool is_of_every_torch(std::string_view name);
// Packages of torch that came with a release and have grown since: what is not found in them is of a newer torch.
bool is_young_part_of_torch(std::string_view package);
// Interfaces that torch has removed, by the names under which programs ask `torch` for them.
bool is_removed_from_torch(std::string_view name);

}  // namespace scankit::logs
