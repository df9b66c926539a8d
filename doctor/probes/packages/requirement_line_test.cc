// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/requirement_line.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

Python python311() {
  Python python;
  python.version = "3.11.7";
  python.implementation = "cpython";
  return python;
}

std::optional<bool> holds(std::string_view marker, const std::vector<std::string>& extras = {}) {
  return marker_holds(marker, python311(), "x86_64", extras);
}

TEST(RequirementLine, IsTakenApart) {
  const auto line = parse_requirement(" tokenizers[testing, dev] (>=0.20,<0.21) ; extra == 'torch'");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->name, "tokenizers");
  EXPECT_EQ(line->extras, (std::vector<std::string>{"testing", "dev"}));
  EXPECT_EQ(line->text(), "tokenizers>=0.20,<0.21");
  EXPECT_EQ(line->marker, "extra == 'torch'");
  EXPECT_EQ(parse_requirement("einops")->text(), "einops");
  EXPECT_EQ(parse_requirement("own @ https://example.org/own.whl")->text(), "own");
  EXPECT_FALSE(parse_requirement("=="));
  EXPECT_FALSE(parse_requirement("name[never closed"));
}

TEST(RequirementLine, MarkersAreEvaluated) {
  EXPECT_EQ(holds(""), true);
  EXPECT_EQ(holds("python_version < '3.11'"), false);
  EXPECT_EQ(holds("python_version >= \"3.10\""), true);  // 3.11 is newer than 3.9 and than 3.10, as a number
  EXPECT_EQ(holds("python_full_version < '3.11.8'"), true);
  EXPECT_EQ(holds("sys_platform == 'win32'"), false);
  EXPECT_EQ(holds("platform_system == \"Linux\" and platform_machine == 'x86_64'"), true);
  EXPECT_EQ(
      holds("platform_machine == 'aarch64' or (os_name == 'posix' and implementation_name == 'cpython')"),
      true);
  EXPECT_EQ(holds("'linux' in sys_platform"), true);
  EXPECT_EQ(holds("platform_machine not in 'x86_64 AMD64'"), false);
  EXPECT_EQ(holds("python_version == '3.11.*'"), true);
}

TEST(RequirementLine, ExtrasCountOnlyWhereTheyAreAskedFor) {
  EXPECT_EQ(holds("extra == 'dev'"), false);
  EXPECT_EQ(holds("extra == 'dev'", {"dev"}), true);
  EXPECT_EQ(holds("extra == 'causal-conv1d'", {"causal_conv1d"}), true);
  EXPECT_EQ(holds("sys_platform == 'linux' and extra == 'opt'"), false);
}

TEST(RequirementLine, WhatIsNotKnownIsNoAnswer) {
  EXPECT_EQ(holds("platform_release > '5'"), std::nullopt);
  EXPECT_EQ(holds("platform_release > '5' and sys_platform == 'win32'"), false);
  EXPECT_EQ(holds("platform_release > '5' or sys_platform == 'linux'"), true);
  EXPECT_EQ(holds("python_version >="), std::nullopt);
  EXPECT_EQ(holds("python_version ~= '3.8'"), std::nullopt);
  EXPECT_EQ(holds("'never closed"), std::nullopt);
  EXPECT_EQ(holds(std::string(100000, '(')), std::nullopt);
  EXPECT_EQ(holds("sys_platform == 'linux' trailing"), std::nullopt);
}

TEST(RequirementLine, EndWhereTheDescriptionBegins) {
  const auto lines = requirement_lines(
      "Metadata-Version: 2.1\nName: mamba-ssm\nLicense: first line\n        \n        third\nRequires-Dist: "
      "torch\nRequires-Dist: einops\n\n"
      "Requires-Dist: from-the-description\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].name, "einops");
}

TEST(ImportNames, AreThoseOfTheTableElseTheDistributions) {
  EXPECT_EQ(import_name_of("PyYAML").package, "yaml");
  EXPECT_FALSE(import_name_of("PyYAML").guessed);
  EXPECT_EQ(import_name_of("huggingface-hub").package, "huggingface_hub");
  EXPECT_TRUE(import_name_of("huggingface-hub").guessed);
}

}  // namespace
}  // namespace scankit
