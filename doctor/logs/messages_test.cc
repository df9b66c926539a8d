// SPDX-License-Identifier: Apache-2.0
// Messages by the format strings of the programs that print them (doctor/tests/logs/messages.yaml), each a log of its
// own. What one user met has siblings in the same source file; a rule has to know them, and nothing else.
#include <gtest/gtest.h>
#include <re2/re2.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "doctor/logs/explainer.h"
#include "doctor/model/finding.h"

namespace scankit::logs {
namespace {

constexpr std::size_t kLeast = 2760, kLeastHealthy = 1210;

// A sentence whose place nothing filled, because the alternative of the pattern that matched has no such group, would
// reach the user as "the installed transformers has no {name}".
std::string cause_of(const std::string& message) {
  const Log log = explain_text(message);
  for (const LogHit& hit : log.hits)
    EXPECT_FALSE(re2::RE2::PartialMatch(english(hit.meaning), "\\{[a-z]+\\d?\\}"))
        << hit.rule << ": " << english(hit.meaning);
  return !log.hits.empty() && log.hits.front().role == "root" ? log.hits.front().cause : "";
}

TEST(Messages, OfTheSameProgramHaveTheirCause) {
  std::size_t all = 0, healthy = 0;
  for (const YAML::Node& group : YAML::LoadFile(SCANKIT_SOURCE_DIR "/doctor/tests/logs/messages.yaml")) {
    const std::string cause = group["cause"].as<std::string>();
    EXPECT_TRUE(cause.empty() || cause_from_slug(cause)) << cause;
    EXPECT_GT(group["messages"].size(), 0u) << group["from"];
    for (const YAML::Node& message : group["messages"]) {
      EXPECT_EQ(cause_of(message.as<std::string>()), cause) << message;
      ++all;
      healthy += cause.empty();
    }
  }
  EXPECT_GE(all, kLeast);
  EXPECT_GE(healthy, kLeastHealthy);
}

}  // namespace
}  // namespace scankit::logs
