// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/knowledge/faults.h"
#include "doctor/model/finding.h"

namespace scankit {
namespace {

TEST(Explain, KnowsEveryCauseThatTheDoctorNamesAndNoOther) {
  for (const CauseInfo& cause : all_causes()) EXPECT_NE(fault_class(cause.slug), nullptr) << cause.slug;
  for (const FaultClass& fault : fault_classes()) EXPECT_TRUE(cause_from_slug(fault.id)) << fault.id;
}

}  // namespace
}  // namespace scankit
