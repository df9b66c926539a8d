// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "doctor/model/finding.h"
#include "envspec/check/facts.h"
#include "envspec/spec/spec.h"

namespace scankit {

// The spec's half of `scankit env check`: one Outcome for each question that the spec asks. Pure functions
// of the snapshot and its facts. A fact that could not be read gives Unknown, and never counts as a match.
std::vector<Outcome> check_spec(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts);

// The parts of check_spec().
std::vector<Outcome> check_platform(const Spec& spec,
                                    const EnvironmentFacts& facts);  // Python, torch, driver, compiler
std::vector<Outcome> check_gpus(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts);
Outcome check_extension(const Spec& spec, const ExtensionSpec& wanted, const EnvironmentFacts& facts);

}  // namespace scankit
