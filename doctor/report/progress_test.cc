// SPDX-License-Identifier: Apache-2.0
// What the line of progress says, and how it gives way. That it is drawn and taken away is shown on real
// terminals by ci/tests/terminals.py.
#include "doctor/report/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/base/columns.h"

namespace scankit::report {
namespace {

using std::chrono::seconds;

ProgressStep import_of(const std::string& module, int age) {
  return {.what = "importing " + module, .age = seconds(age), .limit = "stopped after 60 s"};
}

TEST(ProgressText, NamesWhatIsWaitedForAndUntilWhen) {
  EXPECT_EQ(progress_text({import_of("selective_scan_cuda", 12)}, 79),
            "importing selective_scan_cuda  12 s (stopped after 60 s)");
  EXPECT_EQ(progress_text({import_of("selective_scan_cuda", 0)}, 79), "importing selective_scan_cuda");
  EXPECT_EQ(progress_text({}, 79), "");
}

TEST(ProgressText, CountsThingsAndBytes) {
  const ProgressStep all{.what = "fetching wheels", .done = 3, .total = 60, .age = seconds(40)};
  const ProgressStep one{
      .what = "fetching torch.whl", .have = 120400000, .size = 531000000, .age = seconds(4)};
  EXPECT_EQ(progress_text({all}, 79), "[3/60] fetching wheels  40 s");
  EXPECT_EQ(progress_text({all, one}, 79), "[3/60, 40 s] fetching torch.whl  120/531 MB (22 %)  4 s");
  EXPECT_EQ(progress_text({{.what = "x", .have = 7000000}}, 79), "x  7 MB");
  // A count that passes its end is a fault elsewhere, and no reason to show one here.
  EXPECT_EQ(progress_text({{.what = "x", .done = 90, .total = 84}}, 79), "[84/84] x");
  EXPECT_EQ(progress_text({all, {}}, 79), "[3/60, 40 s] fetching wheels");
}

TEST(ProgressText, IsNeverWiderThanTheTerminal) {
  const ProgressStep all{.what = "", .done = 12, .total = 90, .age = seconds(34)};
  const std::string long_name(300, 'n');
  for (std::size_t columns = 1; columns < 250; ++columns)
    for (const std::string& what :
         {std::string("short"), long_name, std::string("\xE4\xB8\xAD\xE6\x96\x87 x")}) {
      const std::string text = progress_text({all, import_of(what, 7)}, columns);
      EXPECT_LE(columns_of(text), columns) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos);
    }
  EXPECT_EQ(progress_text({import_of(long_name, 7)}, 50),
            "importing nnnnnnnnnnn...  7 s (stopped after 60 s)");
  EXPECT_EQ(progress_text({import_of(long_name, 7)}, 30), "importing nnnnnnnnnnnn...  7 s");
}

}  // namespace
}  // namespace scankit::report
