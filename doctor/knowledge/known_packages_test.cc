// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/known_packages.h"

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

TEST(ImportNamesTable, LeadsBothWays) {
  EXPECT_EQ(import_name_of_distribution("pyyaml"), "yaml");
  EXPECT_EQ(distribution_of_import_name("yaml"), "pyyaml");
  EXPECT_EQ(distribution_of_import_name("cv2"), "opencv-python");  // the first of several
  EXPECT_EQ(import_name_of_distribution("opencv-python-headless"), "cv2");
  EXPECT_EQ(distribution_of_import_name("einops"), "einops");
}

TEST(ImportNamesTable, GuessesNothing) {
  EXPECT_EQ(import_name_of_distribution("no-such-distribution"), std::nullopt);
  EXPECT_EQ(distribution_of_import_name("no_such_package"), std::nullopt);
}

TEST(Signatures, ChangeWithTheRelease) {
  const std::string fwd = "causal_conv1d_cuda.causal_conv1d_fwd";
  EXPECT_EQ(signature_distribution(fwd), "causal-conv1d");
  EXPECT_EQ(known_signature(fwd, "1.1.3.post1")->arguments, 5u);
  EXPECT_EQ(known_signature(fwd, "1.5.0.post8")->arguments, 7u);
  EXPECT_EQ(known_signature(fwd, "1.5.1")->arguments, 8u);
}

TEST(Signatures, SayNothingOfWhatTheyDoNotKnow) {
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "2.0"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "main"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.other", "1.5.0"));
  EXPECT_EQ(signature_distribution("somebody.else"), "");
}

}  // namespace

}  // namespace scankit
