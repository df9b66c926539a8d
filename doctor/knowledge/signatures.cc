// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/signatures.h"

#include <yaml-cpp/yaml.h>

#include <vector>

#include "doctor/base/version.h"

extern "C" const char scankit_knowledge_signatures[], scankit_knowledge_signatures_end[];

namespace scankit {
namespace {

struct SignatureRow {
  std::string callee, distribution;
  Version from, below;  // [from, below)
  unsigned arguments;
};

std::vector<SignatureRow> read_signatures() {
  std::vector<SignatureRow> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_signatures, scankit_knowledge_signatures_end));
  // A row with a damaged version is dropped: it could match the wrong release.
  for (const auto& row : root["functions"]) {
    const auto from = Version::parse(row["from"].as<std::string>());
    const auto below = Version::parse(row["below"].as<std::string>());
    if (from && below)
      rows.push_back({row["module"].as<std::string>() + "." + row["function"].as<std::string>(),
                      row["distribution"].as<std::string>(), *from, *below, row["arguments"].as<unsigned>()});
  }
  return rows;
}

const std::vector<SignatureRow>& signatures() {
  static const std::vector<SignatureRow> rows = read_signatures();
  return rows;
}

}  // namespace

std::string signature_distribution(const std::string& callee) {
  for (const SignatureRow& row : signatures())
    if (row.callee == callee) return row.distribution;
  return {};
}

std::optional<KnownSignature> known_signature(const std::string& callee, const std::string& version) {
  const auto installed = Version::parse(version);
  // A pre-release may have either signature.
  if (!installed || installed->is_prerelease()) return std::nullopt;
  for (const SignatureRow& row : signatures())
    if (row.callee == callee && row.from <= *installed && *installed < row.below)
      return KnownSignature{row.distribution, row.arguments};
  return std::nullopt;
}

}  // namespace scankit
