// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "envspec/history/history.h"

namespace scankit::envspec {
namespace {

constexpr std::int64_t kBegin = 1'700'000'000;

// A repository with one spec, by the real git. Times count from kBegin.
class GitHistory : public testing::Test {
 protected:
  GitHistory() : work_(TemporaryDirectory::create("scankit-git-history").value()) {
    git({"init", "-q", "-b", "main", "."});
  }

  std::string at(const std::string& inner) const { return path_join(work_.path(), inner); }

  std::string git(const std::vector<std::string>& words, std::int64_t time = 0) const {
    ProcessRequest request;
    request.argv = {"git", "-c", "user.name=n", "-c", "user.email=n@example.org"};
    request.argv.insert(request.argv.end(), words.begin(), words.end());
    request.working_directory = work_.path();
    const std::string date = "@" + std::to_string(kBegin + time) + " +0000";
    request.environment = std::vector<std::string>{"PATH=" + std::string(std::getenv("PATH")),
                                                   "HOME=" + work_.path(), "GIT_CONFIG_NOSYSTEM=1",
                                                   "GIT_COMMITTER_DATE=" + date, "GIT_AUTHOR_DATE=" + date};
    const auto ran = run_process(request);
    EXPECT_TRUE(ran && ran->ok()) << words.front() << ": " << (ran ? ran->err : english(ran.error().message));
    return ran ? ran->out.substr(0, ran->out.find('\n')) : "";
  }

  void put(const std::string& torch) const {
    const bool spec = torch.find_first_not_of("0123456789.") == std::string::npos;
    ASSERT_TRUE(write_file_atomically(at("s.yaml"),
                                      spec ? "schema: 1\ntorch: {version: \"" + torch + "\"}\n" : torch));
  }

  void commit(const std::string& torch, std::int64_t time) const {
    put(torch);
    git({"add", "s.yaml"});
    git({"commit", "-q", "-m", torch}, time);
  }

  // "TORCH BEFORE>AFTER" of each commit since then, by the order in which they are told.
  std::vector<std::string> changes(std::int64_t since, const std::string& file = "s.yaml") {
    problems_.clear();
    limits_.clear();
    std::vector<std::string> lines;
    for (const HistoryEvent& event : commits_since(at(file), kBegin + since, problems_, limits_)) {
      lines.emplace_back();
      for (const FieldChange& one : event.changes)
        lines.back() += one.field + " " + one.before + ">" + one.after;
    }
    return lines;
  }

  static bool any_says(const std::vector<Message>& messages, std::string_view text) {
    return std::ranges::any_of(
        messages, [&](const Message& one) { return one.english().find(text) != std::string::npos; });
  }

  using Lines = std::vector<std::string>;
  const TemporaryDirectory work_;
  std::vector<Message> problems_, limits_;
};

TEST_F(GitHistory, ACommitIsComparedWithItsParent) {
  commit("2.8", 1);
  git({"checkout", "-q", "-b", "side"});
  commit("2.9", 2);
  git({"checkout", "-q", "main"});
  commit("2.10", 3);
  git({"merge", "-q", "-s", "ours", "--no-commit", "side"});
  commit("2.11", 4);
  EXPECT_EQ(changes(1), (Lines{"torch.version 2.10>2.11", "torch.version 2.8>2.10", "torch.version 2.8>2.9",
                               "torch.version >2.8"}));
  EXPECT_TRUE(problems_.empty() && limits_.empty());
}

TEST_F(GitHistory, ACommitWithAnOlderDateHidesNoOther) {
  commit("2.8", 1);
  commit("2.9", 50);
  commit("2.10", 30);
  EXPECT_EQ(changes(40), Lines{"torch.version 2.8>2.9"});
}

// "Everything was added" would be a guess.
TEST_F(GitHistory, AContentThatCannotBeReadIsNotAnEmptyOne) {
  commit("2.8", 1);
  commit("2.9", 2);
  const std::string blob = git({"rev-parse", "HEAD~1:s.yaml"});
  std::filesystem::remove(at(".git/objects/" + blob.substr(0, 2) + "/" + blob.substr(2)));
  EXPECT_EQ(changes(2), Lines{""});
  EXPECT_TRUE(any_says(problems_, "git cat-file failed")) << problems_.size();
  commit("torch: [", 3);
  commit("2.10", 4);
  EXPECT_EQ(changes(4), Lines{""});
  EXPECT_TRUE(any_says(problems_, "changed in " + at("s.yaml")));
}

TEST_F(GitHistory, AFileThatCameBackWasAdded) {
  commit("2.8", 1);
  git({"rm", "-q", "s.yaml"});
  git({"commit", "-q", "-m", "Remove it"}, 2);
  commit("2.9", 3);
  EXPECT_EQ(changes(2), (Lines{"torch.version >2.9", ""}));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(GitHistory, WhatGitRefusesIsNotNoCommit) {
  EXPECT_EQ(changes(0), Lines{});
  EXPECT_TRUE(problems_.empty()) << "a repository without a commit";
  commit("2.8", 1);
  git({"config", "log.date", "nonsense"});
  EXPECT_EQ(changes(0), Lines{});
  EXPECT_TRUE(any_says(problems_, "git log failed"));
  EXPECT_FALSE(parse_since(at("s.yaml"), kBegin * 2)->problems.empty());
  git({"config", "log.date", "iso"});
  git({"config", "i18n.logOutputEncoding", "UTF-16"});
  git({"config", "log.follow", "true"});
  EXPECT_EQ(changes(0).size(), 1U);
}

// As in a work tree or a submodule whose repository was moved away.
TEST_F(GitHistory, ARepositoryThatIsGoneIsAProblem) {
  ASSERT_TRUE(make_directories(at("tree")));
  ASSERT_TRUE(write_file_atomically(at("tree/.git"), "gitdir: /no/such/repository\n"));
  ASSERT_TRUE(write_file_atomically(at("tree/s.yaml"), "schema: 1\n"));
  EXPECT_EQ(changes(0, "tree/s.yaml"), Lines{});
  EXPECT_TRUE(any_says(problems_, "not a git repository: /no/such/repository"));
  const auto alone = TemporaryDirectory::create("scankit-no-repository").value();
  EXPECT_TRUE(git_file(path_join(alone.path(), "s.yaml")).problem.empty());
}

TEST_F(GitHistory, WithoutGitItIsSaid) {
  commit("2.8", 1);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/no/such/directory", 1);
  const Lines lines = changes(0);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(lines, Lines{});
  EXPECT_TRUE(any_says(limits_, "git was not found, so commits were not read"));
}

// The only commit of such a clone looks as if it had added every file.
TEST_F(GitHistory, AShallowCloneDoesNotNameTheWrongCommit) {
  commit("2.8", 1);
  ASSERT_TRUE(write_file_atomically(at("other"), "x"));
  git({"add", "other"});
  git({"commit", "-q", "-m", "Add another file"}, 50);
  git({"clone", "-q", "--depth", "1", "file://" + work_.path(), "clone"});
  EXPECT_EQ(changes(10, "clone/s.yaml"), Lines{});
  EXPECT_TRUE(any_says(problems_, "is in a shallow clone"));
  EXPECT_EQ(changes(60, "clone/s.yaml").size(), 0U);
  EXPECT_TRUE(problems_.empty() && any_says(limits_, "is in a shallow clone"));
  const auto since = parse_since(at("clone/s.yaml"), kBegin * 2);
  ASSERT_TRUE(since) << since.error().message;
  EXPECT_EQ(since->commit, "");
  EXPECT_TRUE(any_says(since->limits, "is in a shallow clone"));
}

TEST_F(GitHistory, MoreCommitsThanAreReadAreSaid) {
  for (std::size_t i = 0; i < kMostCommits + 1; ++i)
    commit("2." + std::to_string(i), static_cast<std::int64_t>(i));
  EXPECT_EQ(changes(0).size(), kMostCommits);
  EXPECT_TRUE(any_says(limits_, "only the last 50 commits of "));
  changes(40);
  EXPECT_TRUE(limits_.empty());
}

}  // namespace
}  // namespace scankit::envspec
