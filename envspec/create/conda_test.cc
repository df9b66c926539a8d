// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/conda.h"

#include <gtest/gtest.h>

namespace scankit::envspec {
namespace {

TEST(Conda, IsRecognisedByItsVersion) {
  using Kind = CondaProgram::Kind;
  const auto version = [](const char* printed, Kind kind) {
    const auto found = conda_of_version(printed);
    return found && found->kind == kind ? found->version : "(none)";
  };
  EXPECT_EQ(version("conda 24.7.1\n", Kind::Conda), "24.7.1");
  EXPECT_EQ(version("mamba 1.5.8\nconda 24.3.0\n", Kind::Conda), "24.3.0");
  EXPECT_EQ(version("2.0.5\n", Kind::Libmamba), "2.0.5");
  EXPECT_EQ(conda_of_version("conda 4.6.14").error().code, Errc::Unsupported);
  EXPECT_FALSE(conda_of_version("usage: conda"));
}

TEST(Conda, GetsARangeInItsOwnWords) {
  const auto words = [](const char* range) { return conda_python(VersionRange::parse(range).value()); };
  EXPECT_EQ(words("==3.11.*, !=3.11.2"), "python 3.11.*,!=3.11.2");
  EXPECT_EQ(words(">=3.10,<3.13"), "python >=3.10,<3.13");
  EXPECT_EQ(words("==3.11.7"), "python ==3.11.7");
  EXPECT_EQ(conda_python({}), "python");
}

TEST(Conda, InstallsFilesByUrlOrFromADirectory) {
  EnvironmentLock lock;
  lock.conda_packages = {
      {.name = "a", .channel = "c", .url = "https://h.example/c/noarch/a-1-0.conda", .md5 = "12"},
      {.name = "b", .channel = "pypi"}};
  EXPECT_EQ(explicit_file(lock, ""), "@EXPLICIT\nhttps://h.example/c/noarch/a-1-0.conda#12\n");
  EXPECT_EQ(explicit_file(lock, "/f"), "@EXPLICIT\nfile:///f/a-1-0.conda#12\n");
  lock.conda_packages[0].url = "";
  EXPECT_EQ(explicit_file(lock, ""), "");  // of a private channel: looked for by name
}

}  // namespace
}  // namespace scankit::envspec
