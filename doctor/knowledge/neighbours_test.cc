// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scankit {
namespace {

TEST(NeighbourPairs, AreRangesOfDistributions) {
  EXPECT_FALSE(neighbour_pairs().empty());
  for (const NeighbourPair& pair : neighbour_pairs())
    for (const std::string& range : {pair.releases, pair.takes}) {
      EXPECT_EQ(range.find_first_not_of("<>=!~.,0123456789"), std::string::npos) << range;
      EXPECT_NE(range.find_first_of("<>=!~"), std::string::npos) << range;
    }
}

TEST(NeighbourPairs, KnowTheOneThatMambaPins) {
  const auto row = std::ranges::find(neighbour_pairs(), "tilelang", &NeighbourPair::package);
  ASSERT_NE(row, neighbour_pairs().end());
  EXPECT_EQ(row->with, "apache-tvm-ffi");
  EXPECT_EQ(row->takes, "<0.1.10");
}

}  // namespace
}  // namespace scankit
