// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/faults.h"

#include <gtest/gtest.h>

#include <set>

namespace scankit::knowledge {
namespace {

TEST(FaultClasses, AreCompleteAndNamedOnce) {
  std::set<std::string> ids;
  for (const FaultClass& fault : fault_classes()) {
    EXPECT_TRUE(ids.insert(fault.id).second) << fault.id;
    EXPECT_FALSE(fault.title.empty() || fault.root_cause.empty() || fault.fix.empty()) << fault.id;
    // Every side is there, or says why it is not. What the doctor does not do, the user still may.
    EXPECT_NE(fault.proof_static.empty(), fault.no_static.empty()) << fault.id;
    EXPECT_FALSE(fault.proof_observed.empty() && fault.no_observed.empty()) << fault.id;
    EXPECT_FALSE(fault.error_lines.empty() && fault.no_log.empty()) << fault.id;
    EXPECT_TRUE(fault.by_files() || fault.by_import() || fault.by_log()) << fault.id;
    EXPECT_FALSE(fault.sources.empty()) << fault.id;
  }
  EXPECT_FALSE(ids.empty());
}

TEST(FaultClasses, AreFoundByTheirSlug) {
  ASSERT_NE(fault_class("missing_cudart"), nullptr);
  EXPECT_EQ(fault_class("missing_cudart")->stage, "import");
  EXPECT_EQ(fault_class("no_such_class"), nullptr);
}

// A rule without a cause makes no finding, so that nobody would read its repair.
TEST(LogRules, SayARepairOnlyForACauseOfTheirOwn) {
  ASSERT_NE(log_rule("driver_headers"), nullptr);
  EXPECT_NE(log_rule("driver_headers")->repair, "");
  EXPECT_EQ(log_rule("no_such_rule"), nullptr);
  for (const LogRule& rule : log_rules()) EXPECT_FALSE(rule.cause.empty() && !rule.repair.empty()) << rule.id;
}

}  // namespace
}  // namespace scankit::knowledge
