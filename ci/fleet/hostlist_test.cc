// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

#include "ci/fleet/roster.h"
#include "ci/fleet/slurm.h"

namespace scankit::fleet {
namespace {

std::string names_of(std::string_view list) {
  const auto names = expanded_hosts(list);
  if (!names) return "refused: " + english(names.error().message);
  std::string text;
  for (const std::string& name : *names) text += (text.empty() ? "" : " ") + name;
  return text;
}

const std::pair<const char*, const char*> kLists[] = {
    {"node1", "node1"},
    {"node[1-5]", "node1 node2 node3 node4 node5"},
    {"node[08-11]", "node08 node09 node10 node11"},
    {"node[1-2,7,10-11]", "node1 node10 node11 node2 node7"},
    {"rack[0-1]node[1-2]", "rack0node1 rack0node2 rack1node1 rack1node2"},
    {"gpu[1-2]-ib", "gpu1-ib gpu2-ib"},
    {"login,n[001-002],n001", "login n001 n002"},
    {"a[1-2]b,c[3]", "a1b a2b c3"},
};

TEST(HostList, IsExpandedWithoutSlurm) {
  for (const auto& [list, names] : kLists) EXPECT_EQ(names_of(list), names) << list;
  EXPECT_EQ(names_of("b a\nb\n"), "a b") << "one name a line, as in a file";
  EXPECT_EQ(names_of(""), "");
}

TEST(HostList, IsExpandedAsSlurmDoes) {
  if (!slurm_is_here()) GTEST_SKIP() << "no Slurm here";
  for (const auto& [list, names] : kLists) {
    const auto theirs = host_names(list);
    ASSERT_TRUE(theirs) << english(theirs.error().message);
    EXPECT_EQ(expanded_hosts(list).value_or({}), *theirs) << list;
  }
}

TEST(HostList, RefusesWhatItCannotRead) {
  EXPECT_EQ(names_of("node[1-5"), "refused: \"node[1-5\": [ without ]");
  EXPECT_EQ(names_of("node1-5]"), "refused: \"node1-5]\": ] without [");
  EXPECT_EQ(names_of("node[5-1]"), "refused: \"node[5-1]\": the range 5-1 is reversed");
  EXPECT_EQ(names_of("node[a-c]"), "refused: \"node[a-c]\": [a-c] is not a range of numbers");
  for (const char* bad :
       {"n[]", "n[1-]", "n[-1]", "n[1,]", "n[0-99999999]", "n[1-300]m[1-300]", "n[1-9999999999]"})
    EXPECT_FALSE(expanded_hosts(bad)) << bad;
}

}  // namespace
}  // namespace scankit::fleet
