// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"
#include "doctor/base/version.h"
#include "doctor/model/snapshot.h"
#include "envspec/check/check.h"
#include "envspec/spec/spec.h"

namespace scankit::envspec {

// The machine that a spec is for, as `build --for` and `fix --for` want it: its GPUs, and the oldest driver
// that it takes, so that the code is such as that driver reads. `name` is what messages call the file.
Result<Snapshot> machine_of_spec(const std::string& text, const std::string& name);

// NVIDIA writes the third number with two digits: 580.65.06.
std::string driver_text(const Version& version);

struct DerivedSpec {
  Spec spec;
  SpecNotes notes;
};
// The spec that an environment meets: exact where another value would break what was built, a range where
// not. What the facts do not tell is left out, and a note says why.
DerivedSpec derive_spec(const EnvironmentFacts& facts);

}  // namespace scankit::envspec
