// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

namespace scankit {

// How many arguments MODULE.FUNCTION takes in a release of the
// distribution that brings the module (signatures.yaml).
struct KnownSignature {
  std::string distribution;
  unsigned arguments = 0;
};
// The distribution for which the table has the function ("causal_conv1d_cuda.causal_conv1d_fwd"); ""
// for none.
std::string signature_distribution(const std::string& callee);
// Nothing for a release outside the table, and for a pre-release.
std::optional<KnownSignature> known_signature(const std::string& callee, const std::string& version);

}  // namespace scankit
