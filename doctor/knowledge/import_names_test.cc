// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/knowledge/importers.h"

namespace scankit {
namespace {

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

}  // namespace
}  // namespace scankit
