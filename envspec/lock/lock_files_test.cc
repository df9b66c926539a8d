// SPDX-License-Identifier: Apache-2.0
// The compiled files of a lock, compared with those of an environment on disk and of a stored snapshot.
#include <gtest/gtest.h>

#include <filesystem>

#include "doctor/base/files.h"
#include "envspec/check/findings_test.h"
#include "envspec/lock/lock.h"

namespace scankit::envspec {
namespace {
namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

// The running machine, on which no file can be opened, as for another user. Root may read everything.
class RefusingHost : public Host {
 public:
  Result<std::string> read_file(const std::string& path, std::size_t limit) const override {
    return real_->read_file(path, limit);
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override {
    return Error{Errc::PermissionDenied, path + ": permission denied", ""};
  }
  Result<std::vector<DirEntry>> list(const std::string& path) const override { return real_->list(path); }
  Result<FileInfo> stat(const std::string& path) const override { return real_->stat(path); }
  Result<FileInfo> lstat(const std::string& path) const override { return real_->lstat(path); }
  Result<std::string> readlink(const std::string& path) const override { return real_->readlink(path); }
  Result<std::string> realpath(const std::string& path) const override { return real_->realpath(path); }
  std::optional<std::string> env(std::string_view name) const override { return real_->env(name); }
  bool is_live() const override { return true; }

 private:
  const std::unique_ptr<Host> real_ = make_real_host();
};

// A site-packages with the library of one package. Its files are no ELF: their hashes count.
class LockedFiles : public testing::Test {
 protected:
  LockedFiles() : folder_(*TemporaryDirectory::create("locked-files")), host_(make_real_host()) {
    write("x/a.so", "one");
    write("x-1.dist-info/RECORD", "x/a.so,,\n");
    here_.python = Probed<Python>::of({});
    here_.python.value.sys_path = {{.path = folder_.path(), .origin = "site", .exists = true}};
    here_.distributions =
        Probed<std::vector<Distribution>>::of({{.name = "x", .version = "1", .path = path("x-1.dist-info")}});
    HashCache cache("");
    lock_ = lock_facts(here_);
    EXPECT_TRUE(lock_files(*host_, here_, cache, {}, lock_));
    EXPECT_EQ(lock_.libraries.size(), 1U);
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(make_directories(path_dirname(path(name))));
    ASSERT_TRUE(write_file_atomically(path(name), text));
  }
  Outcome outcome() const {
    Subject subject;
    subject.snapshot = here_;
    HashCache cache("");
    return locked_files({"L", lock_, subject}, *host_, cache);
  }
  Lines answer() const { return test::in_words(outcome()); }
  std::string summary() const { return english(outcome().findings.at(0).summary); }

  TemporaryDirectory folder_;
  std::unique_ptr<Host> host_;
  Snapshot here_;
  EnvironmentLock lock_;
};

TEST_F(LockedFiles, AreWhatWasLocked) { EXPECT_EQ(answer(), Lines{"passed"}); }

TEST_F(LockedFiles, AreUnknownWithoutAPython) {
  here_.python = Probed<Python>::failed("unreadable");
  EXPECT_EQ(answer(), Lines{"unknown"});
}

TEST_F(LockedFiles, ArePutBackByThePackageThatHasThem) {
  write("x/a.so", "two");
  const std::string differs = "error drift_lock_file " + path("x/a.so");
  EXPECT_EQ(answer(), Lines{differs + ": reinstall x==1"});
  EXPECT_NE(summary().find("(different content, but the same dependencies)"), std::string::npos);
  lock_.libraries[0].needed = {"libc.so.6"};
  lock_.libraries[0].string_abi = "new";
  EXPECT_NE(summary().find("(string ABI new -> -; needs libc.so.6 -> -)"), std::string::npos) << summary();
  lock_.modules = {{"other", "x", "x/b.so", "{}"}};
  EXPECT_EQ(answer(), Lines{differs + ": reinstall x==1"});
  lock_.modules.push_back({"a", "x", "x/a.so", "{}"});  // built by scankit: an index does not have it
  EXPECT_EQ(answer(), Lines{differs + ": fix a"});
}

TEST_F(LockedFiles, AreMissing) {
  ASSERT_TRUE(fs::remove(path("x/a.so")));
  EXPECT_EQ(answer(), Lines{"error drift_lock_file x/a.so: reinstall x==1"});
  lock_.libraries[0].distribution = "";  // nobody knows who brings it
  EXPECT_EQ(answer(), Lines{"error drift_lock_file x/a.so"});
}

TEST_F(LockedFiles, AreMoreThanWereLocked) {
  write("b.abi3.so", "three");
  EXPECT_EQ(answer(), Lines{"warning drift_lock_file_extra " + path("b.abi3.so") + ": remove b"});
  fs::remove(path("b.abi3.so"));
  write("x/b.so", "three");
  write("x-1.dist-info/RECORD", "x/a.so,,\nx/b.so,,\n");
  EXPECT_EQ(answer(),
            Lines{"warning drift_lock_file_extra " + path("x/b.so") + ": lock it: scankit env lock"});
}

// The package is one finding of another question.
TEST_F(LockedFiles, FollowFromThePackage) {
  write("x/a.so", "two");
  here_.distributions.value[0].version = "2";
  EXPECT_EQ(answer(), Lines{"passed"});
  here_.distributions.value[0].version = "1";
  here_.distributions.value.insert(here_.distributions.value.begin(), {.name = "Y", .version = "1"});
  EXPECT_EQ(answer().at(0).substr(0, 21), "error drift_lock_file");
  lock_.distributions.clear();  // the package itself is extra
  EXPECT_EQ(answer(), Lines{"passed"});
  here_.distributions.value.clear();  // or missing
  lock_.distributions = {{"x", "1", "pip", "index", {}, ""}};
  EXPECT_EQ(answer(), Lines{"passed"});
}

TEST_F(LockedFiles, AreUnknownWhereTheyCannotBeRead) {
  host_ = std::make_unique<RefusingHost>();
  EXPECT_EQ(answer(), Lines{"unknown"});
}

Lines answer_of_snapshot(const EnvironmentLock& lock, const Snapshot& here) {
  Subject subject;
  subject.snapshot = here;
  const Outcome outcome = locked_build_ids({"L", lock, subject});
  Lines lines = test::in_words(outcome);
  lines.push_back(english(outcome.not_checked.at(0)));
  return lines;
}

TEST(LockedBuildIds, AreComparedWhereBothAreKnown) {
  EnvironmentLock lock;
  const auto locked = [](const char* path, const char* id) {
    LockedLibrary one;
    one.path = path, one.build_id = id;
    return one;
  };
  lock.libraries = {locked("x/a.so", "11"), locked("a.so", "22"), locked("lib/x/a.so.1", "33"),
                    locked("old.so", "")};
  Snapshot here;
  const auto add = [&](const char* path, const char* id) {
    Extension& file = here.extensions.value.emplace_back();
    file.path = path, file.build_id = id;
  };
  here.extensions.state = here.torch.state = ProbeState::Present;
  const auto compared = [](int count) {
    return "the hashes of 4 files: a snapshot contains none; " + std::to_string(count) +
           " of them were compared by their build-id";
  };
  add("/site/x/a.so", "11");  // the longest inner path counts
  add("/site/y/a.so", "22");
  add("/site/old.so", "44");  // no build-id was locked
  add("/site/xa.so", "55");   // locked under no such name
  EXPECT_EQ(answer_of_snapshot(lock, here), (Lines{"passed", compared(2)}));
  here.torch.value.libraries = {{.path = "/site/old/a.so", .build_id = "22"},
                                {.path = "/site/lib/x/a.so.1", .build_id = "34"}};
  here.extensions.value[1].build_id = "23";
  EXPECT_EQ(answer_of_snapshot(lock, here),
            (Lines{"error drift_lock_file /site/lib/x/a.so.1 [/torch/value/libraries/1/build_id]",
                   "error drift_lock_file /site/y/a.so [/extensions/value/1/build_id]", compared(4)}));
  here.extensions.value[1].build_id = "";
  here.torch.value.libraries.clear();
  EXPECT_EQ(answer_of_snapshot(lock, here), (Lines{"passed", compared(1)}));
}

}  // namespace
}  // namespace scankit::envspec
