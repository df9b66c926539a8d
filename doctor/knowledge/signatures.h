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
// Which distribution the table knows the function of; "" for none.
std::string signature_distribution(const std::string& callee);
std::optional<KnownSignature> known_signature(const std::string& callee, const std::string& version);

}  // namespace scankit
