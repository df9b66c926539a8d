// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/cli/commands.h"
#include "doctor/knowledge/faults.h"
#include "doctor/model/finding.h"

namespace scankit::cli {
namespace {

TEST(Explain, KnowsEveryCauseThatTheDoctorNamesAndNoOther) {
  for (const CauseInfo& cause : all_causes())
    EXPECT_NE(knowledge::fault_class(cause.slug), nullptr) << cause.slug;
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    EXPECT_TRUE(cause_from_slug(fault.id)) << fault.id;
}

TEST(ExplainSearch, RanksTheCauseThatSaysIt) {
  const auto first = [](const std::string& query) {
    const auto found = search_causes(query);
    return found.empty() ? "" : found.front()->id;
  };
  EXPECT_EQ(first("cudart"), "missing_cudart");
  EXPECT_EQ(first("torch version"), "torch_version_mismatch");
  EXPECT_EQ(first("cxx11"), "abi_cxx11_mismatch");
  EXPECT_EQ(first("undefined symbol"), "torch_version_mismatch");
  bool version = false, abi = false;
  for (const knowledge::FaultClass* fault : search_causes("undefined symbol")) {
    version = version || fault->id == "torch_version_mismatch";
    abi = abi || fault->id == "abi_cxx11_mismatch";
  }
  EXPECT_TRUE(version && abi);
  EXPECT_EQ(first("quince marmalade"), "");
  EXPECT_EQ(first("torch marmalade"), "");  // half of the words is not enough
  EXPECT_EQ(first(""), "");
}

TEST(ExplainSearch, NamesWhatWasProbablyMeant) {
  EXPECT_NE(cause_hint("torch_version_mismach").find("torch_version_mismatch"), std::string::npos);
  EXPECT_EQ(cause_hint("marmalade").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace scankit::cli
