// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/faults.h"

#include <gtest/gtest.h>

#include <set>

namespace scankit {
namespace {

TEST(FaultClasses, AreCompleteAndNamedOnce) {
  std::set<std::string> ids;
  for (const FaultClass& fault : fault_classes()) {
    EXPECT_TRUE(ids.insert(fault.id).second) << fault.id;
    EXPECT_FALSE(fault.title.empty() || fault.root_cause.empty() || fault.fix.empty()) << fault.id;
    EXPECT_FALSE(fault.proof_static.empty() && fault.proof_observed.empty()) << fault.id;
    EXPECT_FALSE(fault.sources.empty()) << fault.id;
  }
  EXPECT_FALSE(ids.empty());
}

TEST(FaultClasses, AreFoundByTheirSlug) {
  ASSERT_NE(fault_class("missing_cudart"), nullptr);
  EXPECT_EQ(fault_class("missing_cudart")->stage, "import");
  EXPECT_EQ(fault_class("no_such_class"), nullptr);
}

}  // namespace
}  // namespace scankit
