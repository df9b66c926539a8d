// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/model/finding.h"

// For tests: the cases of doctor/tests/cases, one file for each check (format:
// doctor/tests/README.md). A case consists of a recorded machine, changes to it (an RFC 7386 merge
// patch, then values at JSON pointers, because a merge patch replaces whole arrays), and the causes
// that must be named, the root first.
namespace scankit::checks {

std::vector<std::string> case_names();  // "torch_symbols_resolve.old_wheel", sorted
nlohmann::json case_file(const std::string& name);
nlohmann::json machine_of(const nlohmann::json& test);  // the snapshot, as changed
Report diagnosed(const nlohmann::json& test);           // diagnosed

}  // namespace scankit::checks
