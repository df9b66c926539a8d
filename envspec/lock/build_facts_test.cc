// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/build_facts.h"

#include <gtest/gtest.h>

#include "builder/fix/distribution.h"
#include "builder/fix/transaction.h"
#include "doctor/base/files.h"

namespace scankit::envspec {
namespace {

const std::string kHash(64, 'a'), kOther(64, 'b');

// `x` 1, installed from a wheel that somebody built.
class BuiltPackage : public testing::Test {
 protected:
  BuiltPackage() : folder_(*TemporaryDirectory::create("built")), host_(make_real_host()) {
    write("site/x-1.dist-info/WHEEL",
          "Wheel-Version: 1.0\nGenerator: setuptools (82.0.1)\nTag: py3-none-any\n");
    write("site/x-1.dist-info/RECORD",
          record("print(1)\n") + "x-1.dist-info/INSTALLER,sha256=z,4\nx-1.dist-info/RECORD,,\n");
  }
  std::string at(const std::string& inner) const { return path_join(folder_.path(), inner); }
  void write(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(make_directories(path_dirname(at(path))));
    ASSERT_TRUE(write_file_atomically(at(path), text));
  }
  static std::string record(const std::string& module) { return fix::record_line({"x.py", module}); }
  Distribution installed() const { return {.name = "x", .version = "1", .path = at("site/x-1.dist-info")}; }
  // As pip keeps it, in a directory of its own.
  void keep_wheel(const std::string& name, const std::string& module, const std::string& origin) const {
    const std::string lines = record(module) + "x-1.dist-info/RECORD,,\n";
    write("cache/aa/bb/cc/" + name + "/x-1-py3-none-any.whl",
          fix::stored_zip({{"x.py", module}, {"x-1.dist-info/RECORD", lines}}));
    if (!origin.empty()) write("cache/aa/bb/cc/" + name + "/origin.json", origin);
  }
  static std::string origin(const std::string& hash) {
    return R"({"url": "https://me:secret@h.example/x-1.tar.gz", "archive_info": {"hash": "sha256=)" + hash +
           "\"}}";
  }
  LockedBuild facts(BuildHints hints = {}) const {
    hints.cache = at("cache");
    return build_facts(*host_, {}, installed(), hints);
  }

  const TemporaryDirectory folder_;
  const std::unique_ptr<Host> host_;
};

TEST_F(BuiltPackage, PipsCacheTellsOfTheWheelWhoseFilesAreInstalled) {
  keep_wheel("one", "print(2)\n", origin(kOther));  // another build of the same release
  keep_wheel("two", "print(1)\n", origin(kHash));
  const LockedBuild build = facts();
  ASSERT_TRUE(build.sdist && build.wheel) << build.why_no_sdist << build.why_no_wheel;
  EXPECT_EQ(build.sdist->sha256, kHash);
  EXPECT_EQ(build.sdist->url, "https://h.example/x-1.tar.gz");
  EXPECT_EQ(build.sdist_from, "pip_cache");
  EXPECT_EQ(build.wheel->sha256, *sha256_file(at("cache/aa/bb/cc/two/x-1-py3-none-any.whl")));
  EXPECT_EQ(build.toolchain.generator, "setuptools (82.0.1)");
}

TEST_F(BuiltPackage, AWheelOfUnknownOriginSaysNothing) {
  keep_wheel("one", "print(1)\n", "");
  keep_wheel("two", "print(1)\n", "[]");
  keep_wheel("three", "print(1)\n", origin("short"));
  keep_wheel("four", "print(2)\n", origin(kHash));
  EXPECT_FALSE(facts().sdist);
}

TEST_F(BuiltPackage, TheInstallersOwnRecordCountsBeforeAnIndex) {
  write("site/x-1.dist-info/direct_url.json",
        R"({"url": "file:///home/me/x-1.tar.gz", "archive_info": {"hash": "sha256=)" + kHash + "\"}}");
  const LockedArtifact index{"x-1.tar.gz", kOther, 7, "https://h.example/x-1.tar.gz"};
  const LockedBuild build = facts({.index = &index});
  ASSERT_TRUE(build.sdist);
  EXPECT_EQ(build.sdist->sha256, kHash);
  EXPECT_EQ(build.sdist->url, "");
  EXPECT_EQ(build.sdist_from, "direct_url");
  EXPECT_FALSE(build.wheel);
  EXPECT_FALSE(build.why_no_wheel.empty());
}

// Another installation since then has another RECORD.
TEST_F(BuiltPackage, AJournalTellsOfTheBuildThatIsStillInstalled) {
  const fix::StateFolder state(folder_.path());
  ASSERT_TRUE(make_directories(path_join(state.root(), "journal")));
  fix::Journal journal;
  journal.id = journal.run = "0001";
  journal.state = fix::Journal::State::Committed;
  journal.builds = {{"x",
                     "1",
                     "2.11.0",
                     "pip",
                     *sha256_file(at("site/x-1.dist-info/RECORD")),
                     {{"FORCE_CUDA", "1"}, {"LD_PRELOAD", "x.so"}}}};
  ASSERT_TRUE(state.write(journal));
  ASSERT_TRUE(state.journals());
  EXPECT_EQ(state.journals()->front().builds, journal.builds);
  auto recorded = recorded_build(*host_, folder_.path(), installed());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->torch, "2.11.0");
  EXPECT_EQ(recorded->switches, (std::map<std::string, std::string>{{"FORCE_CUDA", "1"}}));
  journal.state = fix::Journal::State::Undone;
  ASSERT_TRUE(state.write(journal));
  EXPECT_FALSE(recorded_build(*host_, folder_.path(), installed())) << "it was taken back";
  journal.state = fix::Journal::State::Committed;
  ASSERT_TRUE(state.write(journal));
  write("site/x-1.dist-info/RECORD", record("print(2)\n"));
  EXPECT_FALSE(recorded_build(*host_, folder_.path(), installed())) << "another build is installed";
}

TEST_F(BuiltPackage, OfADirectoryOrARepositoryNoIndexKnowsTheSources) {
  const LockedArtifact index{"x-1.tar.gz", kOther, 7, ""};
  write("site/x-1.dist-info/direct_url.json", R"({"url": "file:///home/me/x", "dir_info": {}})");
  LockedBuild build = facts({.index = &index});
  EXPECT_FALSE(build.sdist);
  EXPECT_EQ(build.why_no_sdist, "it was built from a local directory");
  write("site/x-1.dist-info/direct_url.json",
        R"({"url": "https://h.example/x", "vcs_info": {"vcs": "git", "commit_id": "12ab"}})");
  build = facts({.index = &index});
  EXPECT_FALSE(build.sdist);
  EXPECT_EQ(build.why_no_sdist, "it was built from commit 12ab of https://h.example/x");
}

TEST_F(BuiltPackage, WhatOnlyTheIndexSaysIsCalledSo) {
  const LockedArtifact index{"x-1.tar.gz", kOther, 7, ""};
  const LockedBuild build = facts({.index = &index});
  ASSERT_TRUE(build.sdist);
  EXPECT_EQ(build.sdist_from, "index");
  EXPECT_EQ(build.toolchain.why_no_compilers, "it contains no compiled file");
  const LockedBuild nobody = facts({.why_not_index = "the index was not queried"});
  EXPECT_FALSE(nobody.sdist);
  EXPECT_EQ(nobody.why_no_sdist, "the index was not queried");
  // A lock that was made when the index could be asked still knows.
  const LockedBuild later = facts({.why_not_index = "the index was not queried", .older = &build});
  ASSERT_TRUE(later.sdist);
  EXPECT_EQ(later.sdist_from, "index");
}

// A version that was built once more has other bytes, and can be made of the archive that its earlier build was of.
TEST_F(BuiltPackage, AnotherBuildKeepsTheArchiveOfTheOlderLock) {
  const LockedArtifact archive{"x-1.tar.gz", kOther, 7, ""}, index{"x-1.zip", std::string(64, 'd'), 9, ""};
  const LockedBuild build = facts({.why_not_index = "the index was not queried", .older_archive = &archive});
  ASSERT_TRUE(build.sdist);
  EXPECT_EQ(build.sdist->sha256, kOther);
  EXPECT_EQ(build.sdist_from, "older_lock");
  EXPECT_EQ(facts({.index = &index, .older_archive = &archive}).sdist_from, "index") << "which was asked now";
  write("site/x-1.dist-info/direct_url.json", R"({"url": "file:///home/me/x", "dir_info": {}})");
  EXPECT_FALSE(facts({.older_archive = &archive}).sdist) << "it was built from a directory";
}

}  // namespace
}  // namespace scankit::envspec
