// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

// An environment as files: "plain" 0.9 and "extra" 1.0 of Python alone, and what the tests add.
class ChangeOfSync : public testing::Test {
 protected:
  ChangeOfSync() : work_(TemporaryDirectory::create("scankit-sync-change-test").value()) {
    Python& python = subject_.snapshot.python.value;
    python.prefix = work_.path();
    python.sys_path = {PathEntry{.path = site()}};
    subject_.snapshot.python.state = subject_.snapshot.distributions.state = ProbeState::Present;
    subject_.host = make_real_host();
    add("plain", "0.9", {});
    add("extra", "1.0", {});
    lock_.distributions = {built("native"),
                           {"plain", "1.0", "pip", "index", file("plain-1.0-py3-none-any.whl"), ""}};
    lock_.libraries = {{.path = "native/_c.so", .distribution = "native", .sha256 = std::string(64, 'c')}};
  }

  std::string site() const { return path_join(work_.path(), "lib/python3.11/site-packages"); }
  static LockedArtifact file(const std::string& name) {
    return {name, std::string(64, 'a'), 3, "https://h/" + name};
  }
  static LockedDistribution built(const std::string& name) {
    LockedDistribution one{name, "1.0", "pip", "here", file(name + "-1.0-cp311-cp311-linux_x86_64.whl"), ""};
    one.build = LockedBuild{.sdist = file(name + "-1.0.tar.gz"), .sdist_from = "index"};
    return one;
  }

  // Installed, with files of these texts.
  void add(const std::string& name, const std::string& version,
           const std::map<std::string, std::string>& files) {
    const std::string info = path_join(site(), name + "-" + version + ".dist-info");
    std::string record = name + "-" + version + ".dist-info/RECORD,,\n";
    for (const auto& [path, text] : files) {
      put(path_join(site(), path), text);
      record += path + ",,\n";
    }
    put(path_join(info, "METADATA"), "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n");
    put(path_join(info, "RECORD"), record);
    Distribution one;
    one.name = name;
    one.version = version;
    one.path = info;
    subject_.snapshot.distributions.value.push_back(one);
  }
  static void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_directories(path_dirname(path)));
    ASSERT_TRUE(write_file_atomically(path, text));
  }

  // As an earlier sync has left it: `native` was built, and is this.
  void record_native() {
    auto record = make_record(*subject_.host, subject_.snapshot, lock_);
    ASSERT_TRUE(record) << record.error().message;
    record->lock_sha256 = hash_of(lock_);
    record->proof = {{build_step("native"), "not_verified", "", 0}};
    put(path_join(work_.path(), kRecordFile), record_to_json(*record));
  }
  SyncChange change() const {
    auto found = change_of(subject_, lock_, {}, false);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : SyncChange{};
  }

  const TemporaryDirectory work_;
  Subject subject_;
  EnvironmentLock lock_;
};

TEST_F(ChangeOfSync, InstallsBuildsAndRemoves) {
  const SyncChange found = change();
  ASSERT_EQ(found.install.size(), 1U);
  EXPECT_EQ(found.install[0]->name, "plain");
  ASSERT_EQ(found.build.size(), 1U);
  EXPECT_EQ(found.build[0].archive.file, "native-1.0.tar.gz");
  EXPECT_EQ(found.remove, std::vector<std::string>{"extra"});
  EXPECT_EQ(found.removed, std::vector<std::string>{"extra==1.0"});
  EXPECT_TRUE(found.kept.empty());
}

TEST_F(ChangeOfSync, RefusesWhatHasNeitherWheelNorArchive) {
  lock_.distributions[0].build->sdist->url.clear();
  const auto found = change_of(subject_, lock_, {}, false);
  ASSERT_FALSE(found);
  EXPECT_NE(english(found.error().message).find("no URL of its source archive native-1.0.tar.gz is known"),
            std::string::npos)
      << english(found.error().message);
}

TEST_F(ChangeOfSync, KeepsWhatWasBuiltForThisLock) {
  add("native", "1.0", {{"native/__init__.py", ""}, {"native/_c.so", "built here"}});
  ASSERT_EQ(change().build.size(), 1U) << "nobody knows who made these files";
  record_native();
  SyncChange found = change();
  EXPECT_TRUE(found.build.empty());
  ASSERT_EQ(found.kept.size(), 1U);
  EXPECT_EQ(found.kept[0].name, "native");
  put(path_join(site(), "native/_c.so"), "edited");
  found = change();
  EXPECT_TRUE(found.kept.empty());
  EXPECT_EQ(found.build.size(), 1U);
}

TEST_F(ChangeOfSync, BuildsAgainForAnotherLock) {
  add("native", "1.0", {{"native/__init__.py", ""}, {"native/_c.so", "built here"}});
  record_native();
  lock_.torch = LockedTorch{.version = "2.11.0"};
  EXPECT_TRUE(change().kept.empty());
  EXPECT_EQ(change().build.size(), 1U);
}

}  // namespace
}  // namespace scankit::envspec
