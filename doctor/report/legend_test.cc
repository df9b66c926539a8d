// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/report/text.h"

namespace scankit::report {
namespace {

const std::string kEnv = "/home/student/projects/mamba/.venv";
const std::string kSite = kEnv + "/lib/python3.11/site-packages";

Legend legend() {
  Legend legend;
  legend.offer("ENV", kEnv);
  legend.offer("SITE", kSite);
  return legend;
}

TEST(Legend, NamesWhatIsLongAndRepeated) {
  Legend twice = legend();
  twice.settle({kSite + "/a.so", "needed by " + kSite + "/b.so: no", kEnv + "/bin/python"});
  ASSERT_EQ(twice.entries().size(), 1u);  // the environment itself is left over once
  EXPECT_EQ(twice.entries()[0], (std::pair<std::string, std::string>{"$SITE", kSite}));
  EXPECT_EQ(twice.shortened("see " + kSite + "/torch/lib, " + kSite), "see $SITE/torch/lib, $SITE");
  Legend once = legend();
  once.settle({kSite + "/a.so"});
  EXPECT_TRUE(once.entries().empty());
  EXPECT_EQ(once.shortened(kSite + "/a.so"), kSite + "/a.so");
}

TEST(Legend, LeavesShortPathsAlone) {
  Legend short_one;
  short_one.offer("SITE", "/usr/lib/python3/dist-packages");  // 30 characters
  short_one.settle({"/usr/lib/python3/dist-packages/a", "/usr/lib/python3/dist-packages/b"});
  EXPECT_TRUE(short_one.entries().empty());
}

TEST(Legend, KnowsWhereAPathEnds) {
  Legend used = legend();
  used.settle({kSite + "/a", kSite + "/b", "/mnt" + kSite + "/c"});
  EXPECT_EQ(used.shortened(kSite + "-old/a"), kSite + "-old/a");
  EXPECT_EQ(used.shortened("/mnt" + kSite + "/a"), "/mnt" + kSite + "/a");
  EXPECT_EQ(used.shortened("in " + kSite + "."), "in $SITE.");
  EXPECT_EQ(used.shortened("(" + kSite + "/x)"), "($SITE/x)");
  EXPECT_EQ(used.shortened("位于“" + kSite + "”，" + kSite + "。"), "位于“$SITE”，$SITE。");
  EXPECT_EQ(used.shortened("中" + kSite), "中" + kSite);  // a letter belongs to a name
}

TEST(Legend, NumbersASecondDirectoryOfOneName) {
  Legend two = legend();
  two.offer("SITE", "/home/student/.local/lib/python3.11/site-packages");
  two.settle({kSite + "/a " + kSite + "/b", "/home/student/.local/lib/python3.11/site-packages/a",
              "/home/student/.local/lib/python3.11/site-packages/b"});
  ASSERT_EQ(two.entries().size(), 2u);
  EXPECT_EQ(two.entries()[0].first, "$SITE");
  EXPECT_EQ(two.entries()[1].first, "$SITE2");
}

TEST(Legend, LeavesCommandsAsTheyArePasted) {
  const std::string command = "scankit fix --target " + kSite + "/x\n";
  const auto is_command = [](const std::string& line) { return line.starts_with("scankit "); };
  EXPECT_EQ(with_legend(legend(), kSite + "/a\n" + kSite + "/b\n" + command, is_command),
            "$SITE/a\n$SITE/b\n" + command + "\n$SITE = " + kSite + "\n");
  EXPECT_EQ(with_legend(legend(), "nothing\n", is_command), "nothing\n");
}

}  // namespace
}  // namespace scankit::report
