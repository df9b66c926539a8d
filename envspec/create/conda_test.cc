// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/conda.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "doctor/base/files.h"

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

// Records as conda 24.7 and micromamba 2.8 write them.
TEST(Conda, ListsTheFilesWithItsPrefix) {
  char folder[] = "/tmp/scankit-conda-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string root = folder;
  const auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_directories(path_dirname(path_join(root, path))));
    ASSERT_TRUE(write_file_atomically(path_join(root, path), text));
  };
  put("conda-meta/a-1-0.json", R"({"name": "a", "paths_data": {"paths": [
    {"_path": "lib/a.so", "prefix_placeholder": "/opt/placehold", "file_mode": "binary"},
    {"_path": "bin/a", "prefix_placeholder": "/opt/placehold", "file_mode": "text"},
    {"_path": "share/a", "sha256": "01", "sha256_in_prefix": "01", "path_type": "hardlink"}]}})");
  put("conda-meta/b-1-0.json", R"({"name": "b", "paths_data": {"paths": [
    {"_path": "lib/b.so", "sha256": "01", "sha256_in_prefix": "02", "path_type": "hardlink"},
    {"_path": "etc/b", "sha256": "01", "sha256_in_prefix": "02", "path_type": "hardlink"},
    {"_path": "lib/b.so.1", "sha256": "01", "sha256_in_prefix": "02", "path_type": "softlink"},
    {"_path": "share/b", "sha256": "01", "sha256_in_prefix": "01", "path_type": "hardlink"},
    {"_path": "share/c", "sha256_in_prefix": "01", "path_type": "hardlink"}]}})");
  put("lib/b.so", std::string("\x7f"
                              "ELF\0/env/share\0",
                              15));
  put("etc/b", "prefix = /env\n");
  const CondaPrefixFiles files = prefix_files(root);
  std::filesystem::remove_all(root);
  EXPECT_TRUE(files.conda);
  EXPECT_EQ(files.binary, (std::set<std::string>{"lib/a.so", "lib/b.so"}));
  EXPECT_EQ(files.text, (std::set<std::string>{"bin/a", "etc/b"}));
}

}  // namespace
}  // namespace scankit::envspec
