// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/importers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scankit {
namespace {

TEST(KnownImporters, NamesMambaAndItsConvolution) {
  const auto& packages = known_importers().packages;
  EXPECT_NE(std::ranges::find(packages, "mamba_ssm"), packages.end());
  EXPECT_NE(std::ranges::find(packages, "causal_conv1d"), packages.end());
}

TEST(KnownImporters, FoldersStayBelowTheCheckout) {
  EXPECT_FALSE(known_importers().source_folders.empty());
  for (const std::string& folder : known_importers().source_folders) {
    EXPECT_FALSE(folder.starts_with('/')) << folder;
    EXPECT_EQ(folder.find(".."), std::string::npos) << folder;
  }
}

}  // namespace
}  // namespace scankit
