// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ci/gate/gate.h"
#include "doctor/base/files.h"

namespace scankit::gate {
namespace {

class InitSource : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("scankit-init-test");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    options_.out = folder_->path();
  }
  void put(const std::string& name, const std::string& text = "program") {
    const std::string path = path_join(options_.out, name);
    ASSERT_TRUE(make_directories(path_dirname(path)));
    ASSERT_TRUE(write_file_atomically(path, text));
  }
  std::string refused() {
    const auto source = scankit_source(options_);
    return source ? "taken: " + source->where : english(source.error().message);
  }
  std::optional<TemporaryDirectory> folder_;
  CiInitOptions options_;
};

TEST_F(InitSource, WithoutAnOptionIsACopyOfThisProgram) {
  const auto source = scankit_source(options_);
  ASSERT_TRUE(source) << english(source.error().message);
  EXPECT_EQ(source->where, kCommittedScankit);
  EXPECT_EQ(source->sha256, sha256_file("/proc/self/exe").value_or(""));
  EXPECT_TRUE(source->absent);
  put(kCommittedScankit);
  EXPECT_EQ(scankit_source(options_).value_or({}).sha256, sha256_hex("program"));
  EXPECT_FALSE(scankit_source(options_).value_or({.absent = true}).absent);
}

TEST_F(InitSource, OfAUrlNeedsItsHash) {
  options_.scankit = "https://example.org/scankit.whl?download=1";
  EXPECT_EQ(refused(), "--scankit with a URL needs --sha256");
  options_.sha256 = "abc";
  EXPECT_EQ(refused(), "--sha256 needs 64 hexadecimal digits");
  options_.sha256 = std::string(64, 'A');
  EXPECT_EQ(scankit_source(options_).value_or({}).sha256, std::string(64, 'a'));
  for (const char* bad : {"ftp://example.org/x", "file:///x", "https://example.org/a\nrun: evil", ""}) {
    options_.scankit = bad;
    EXPECT_NE(refused().substr(0, 6), "taken:") << bad;
  }
}

TEST_F(InitSource, OfAFileIsTheHashOfThatFile) {
  options_.scankit = "tools/scankit";
  EXPECT_NE(refused().find("tools/scankit not found"), std::string::npos) << refused();
  options_.sha256 = std::string(64, 'a');
  EXPECT_TRUE(scankit_source(options_)) << "one that will be put there is known by its hash";
  put("tools/scankit");
  EXPECT_NE(refused().find(", not aaaa"), std::string::npos) << refused();
  options_.sha256.clear();
  EXPECT_EQ(scankit_source(options_).value_or({}).sha256, sha256_hex("program"));
  options_.scankit = "tools";
  EXPECT_NE(refused().find("is not a file"), std::string::npos) << refused();
}

TEST_F(InitSource, TheEnvironmentIsFoundInTheOrderOfTheScript) {
  EXPECT_EQ(environment_file(options_.out), "");
  for (const char* name : {"setup.py", "pyproject.toml", "requirements-gpu.txt", "requirements-cpu.txt"})
    put(name);
  EXPECT_EQ(environment_file(options_.out), "requirements-cpu.txt");
  for (const char* name : {"requirements.txt", "environment.yaml", "uv.lock"}) {
    put(name);
    EXPECT_EQ(environment_file(options_.out), name);
  }
}

TEST(InitText, IsWhatYamlReadsBack) {
  EXPECT_EQ(yaml_quoted("a'b: #c"), "'a''b: #c'");
  EXPECT_EQ(groovy_quoted("a'b\\c $d"), "'a\\'b\\\\c $d'");
  EXPECT_EQ(with_script("run: |\n  @X@\n  last\n", "X", "# top\nif a; then\n  b\nfi\n"),
            "run: |\n  if a; then\n    b\n  fi\n  last\n");
}

}  // namespace
}  // namespace scankit::gate
