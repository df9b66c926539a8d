// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "envspec/check/facts.h"
#include "envspec/spec/spec.h"

namespace scankit {

struct DerivedSpec {
  Spec spec;
  SpecNotes notes;
};
// The spec that an environment meets: exact where another value would break what was built, a range where
// not. What the facts do not tell is left out, and a note says why.
DerivedSpec derive_spec(const EnvironmentFacts& facts);

}  // namespace scankit
