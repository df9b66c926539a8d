// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "doctor/cli/commands.h"

namespace scankit::cli {
namespace {

// What std::cin reads, for as long as it lives.
class StandardInput {
 public:
  explicit StandardInput(const std::string& text) : text_(text), before_(std::cin.rdbuf(text_.rdbuf())) {}
  ~StandardInput() {
    std::cin.rdbuf(before_);
    std::cin.clear();
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  std::istringstream text_;
  std::streambuf* before_;
};

TEST(StoredSnapshot, ReadsNoMoreOfStandardInputThanOfAFile) {
  const StandardInput input(std::string((64u << 20) + 1, ' '));
  const auto snapshot = stored_snapshot("-");
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(english(snapshot.error().message), "standard input has more than 64 MiB, more than any snapshot");
}

TEST(StoredSnapshot, IsReadFromStandardInput) {
  const StandardInput input(R"({"schema": 1, "modules": ["m"]})");
  const auto snapshot = stored_snapshot("-");
  ASSERT_TRUE(snapshot) << english(snapshot.error().message);
  EXPECT_EQ(snapshot->modules, std::vector<std::string>{"m"});
}

TEST(Complaint, NamesNobodyWhereItIsRedacted) {
  ::setenv("USER", "zeldaquux", 1);
  for (const bool redact : {false, true}) {
    testing::internal::CaptureStderr();
    report_error({Errc::NotFound, "/srv/zeldaquux/env has no Python", ""}, redact);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("zeldaquux") == std::string::npos, redact) << said;
    EXPECT_NE(said.find("has no Python"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace scankit::cli
