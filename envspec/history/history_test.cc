// SPDX-License-Identifier: Apache-2.0
#include "envspec/history/history.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "builder/fix/transaction.h"
#include "doctor/base/date.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"

namespace scankit::envspec {
namespace {

InstalledPackage package(const std::string& name, const std::string& installer, std::int64_t time,
                         bool requested = false) {
  return {.name = name, .version = "1.0", .installer = installer, .time = time, .requested = requested};
}

TEST(EnvironmentHistory, SinceIsADateOrAnAge) {
  constexpr std::int64_t kNow = 1'000'000;
  EXPECT_EQ(parse_since("1970-01-03", kNow)->time, 2 * 86400);
  EXPECT_EQ(parse_since("1970-01-03 01:00", kNow)->time, 2 * 86400 + 3600);
  EXPECT_EQ(parse_since("2d", kNow)->time, kNow - 2 * 86400);
  EXPECT_EQ(parse_since("12h", kNow)->time, kNow - 12 * 3600);
  for (const char* bad : {"yesterday", "-3d", "3", "", "/", "99999999999d", "2026-02-30"}) {
    const auto since = parse_since(bad, kNow);
    ASSERT_FALSE(since) << bad;
    EXPECT_EQ(since.error().code, Errc::InvalidArgument) << bad;
  }
  // Nothing can have changed since a moment that is still to come.
  const auto future = parse_since("1970-01-20", kNow);
  ASSERT_FALSE(future);
  EXPECT_EQ(future.error().code, Errc::InvalidArgument);
  EXPECT_NE(future.error().message.english().find("is in the future: 1970-01-20 00:00:00 UTC"),
            std::string::npos);
}

// A time zone for as long as it lives, as POSIX writes it: no file of the system is needed for it.
class Zone {
 public:
  explicit Zone(const char* name) {
    if (const char* before = std::getenv("TZ"); before != nullptr) before_ = before;
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    if (before_)
      ::setenv("TZ", before_->c_str(), 1);
    else
      ::unsetenv("TZ");
    ::tzset();
  }

 private:
  std::optional<std::string> before_;
};

// Packages whose times are close together are one event, but never those of two installers.
TEST(EnvironmentHistory, OneRunOfAnInstallerIsOneEvent) {
  const auto events =
      installations({package("b", "pip", 1005), package("a", "pip", 1000, true), package("c", "uv", 1003),
                     package("d", "pip", 5000), package("e", "", 1001), package("timeless", "pip", 0)});
  ASSERT_EQ(events.size(), 4U);
  std::vector<std::string> texts;
  for (const HistoryEvent& event : events) texts.push_back(event.text.english());
  EXPECT_EQ(texts, (std::vector<std::string>{"installed by an unknown installer: e 1.0",
                                             "pip installed a 1.0, b 1.0; requested: a",
                                             "pip installed d 1.0", "uv installed c 1.0"}));
  EXPECT_EQ(events[1].time, 1000);
  EXPECT_EQ(events[1].changes.size(), 2U);
  EXPECT_TRUE(events[1].command.empty());
}

TEST(EnvironmentHistory, CondaTellsItsCommands) {
  const Zone new_york("EST5EDT,M3.2.0,M11.1.0");
  const auto events = conda_history(
      "noise\n==> 2026-11-22 10:00:00 <==\n# cmd: /opt/conda/bin/conda create -n x numpy\n# conda version: "
      "24.1\n"
      "+defaults/linux-64::numpy-2.0.0-py311h_0\n+conda-forge/noarch::py_x-1-0\n"
      "==> 2026-11-23 10:00:00 <==\n# cmd: conda install "
      "numpy=2.1\n-defaults/linux-64::numpy-2.0.0-py311h_0\n"
      "+defaults/linux-64::numpy-2.1.0-py311h_0\n# update specs: ['numpy=2.1']\n==> not a date <==\n+\n-x\n",
      "history");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].command, "/opt/conda/bin/conda create -n x numpy");
  ASSERT_EQ(events[0].changes.size(), 2U);
  EXPECT_EQ(events[0].changes[1].field, "packages.py-x");
  ASSERT_EQ(events[1].changes.size(), 1U);
  EXPECT_EQ(events[1].changes[0].field, "packages.numpy");
  EXPECT_EQ(events[1].changes[0].before + ">" + events[1].changes[0].after, "2.0.0>2.1.0");
  EXPECT_EQ(events[1].text.english(), "conda install numpy=2.1: 1 package");
  // The times are local ones.
  EXPECT_EQ(time_utc(events[1].time), "2026-11-23 15:00:00 UTC");
}

TEST(EnvironmentHistory, CondasPytorchIsTorch) {
  const auto events =
      conda_history("==> 2026-11-22 10:00:00 <==\n+pytorch::pytorch-2.5.1-py3.11_cuda\n", "h");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].changes.at(0).field, "packages.torch");
}

// A history is pasted into issues.
TEST(EnvironmentHistory, CredentialsAreNotPrinted) {
  const auto shown = [](const std::string& command) {
    const auto events = conda_history("==> 2026-11-22 10:00:00 <==\n# cmd: " + command + "\n", "h");
    EXPECT_EQ(events.at(0).text.english(), events[0].command + ": 0 packages");
    return events[0].command;
  };
  EXPECT_EQ(shown("conda install -c https://conda.example/t/TOKEN/ch -c https://h.example/t/x numpy"),
            "conda install -c https://conda.example/t/[redacted]/ch -c https://h.example/t/[redacted] numpy");
  EXPECT_EQ(shown("conda install -c https://user:pw@h.example/ch numpy"),
            "conda install -c https://[redacted]@h.example/ch numpy");
  EXPECT_EQ(shown("conda install -c https://h.example/torch/t numpy=2.1"),
            "conda install -c https://h.example/torch/t numpy=2.1");
}

TEST(EnvironmentHistory, StepsOfARepairHaveNoCredentials) {
  const auto prefix = TemporaryDirectory::create("scankit-history-test").value();
  fix::Journal journal;
  journal.id = journal.run = "0001";
  journal.module = "torch";
  journal.state = fix::Journal::State::Committed;
  journal.steps = {"ran: pip install --index-url https://me:secret@h.example/simple torch"};
  ASSERT_TRUE(fix::StateFolder(prefix.path()).write(journal));
  std::vector<Message> problems;
  const auto events = own_history(*make_real_host(), prefix.path(), problems);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].command, "pip install --index-url https://[redacted]@h.example/simple torch");
  EXPECT_EQ(events[0].text.english().find("secret"), std::string::npos) << events[0].text.english();
}

// A conda environment: torch, which conda calls pytorch, and a package that has no RECORD.
TEST(EnvironmentHistory, WhatHasNoTimeIsNoEventAndIsCounted) {
  const auto prefix = TemporaryDirectory::create("scankit-history-test").value();
  const std::string meta = path_join(prefix.path(), "conda-meta");
  ASSERT_TRUE(make_directories(meta));
  ASSERT_TRUE(write_file_atomically(path_join(meta, "pytorch-2.5.1-py3.11_cuda.json"), "{}"));
  const auto history = [&] {
    Subject subject;
    subject.host = make_real_host();
    subject.snapshot.python.value.prefix = prefix.path();
    subject.snapshot.distributions.value = {
        {.name = "torch", .version = "2.5.1", .path = prefix.path(), .conda_channel = "pytorch"},
        {.name = "eggs", .version = "1.0", .path = path_join(prefix.path(), "eggs.egg-info")}};
    return history_of(subject, {.text = "x", .time = 0}, {});
  };
  const auto says = [](const std::vector<Message>& list, const std::string& text) {
    return std::ranges::any_of(
        list, [&](const Message& one) { return one.english().find(text) != std::string::npos; });
  };
  EnvironmentHistory found = history();
  ASSERT_EQ(found.events.size(), 1U) << history_text(found);
  EXPECT_EQ(found.events[0].text.english(), "conda installed torch 2.5.1");
  EXPECT_TRUE(says(found.limits, "the time of the installation of 1 package is not recorded"));
  EXPECT_TRUE(found.problems.empty());
  EXPECT_FALSE(says(found.limits, "without a zone"));
  // A link to itself cannot be read, by root neither.
  std::filesystem::create_symlink("history", path_join(meta, "history"));
  EXPECT_TRUE(says(history().problems, "conda-meta/history"));
  std::filesystem::remove(path_join(meta, "history"));
  ASSERT_TRUE(write_file_atomically(path_join(meta, "history"), "==> 2026-11-22 10:00:00 <==\n"));
  EXPECT_TRUE(says(history().limits, "conda records local times without a zone"));
}

TEST(EnvironmentHistory, WhatNothingExplainsIsSaid) {
  EnvironmentHistory history;
  EXPECT_EQ(history_status(history), kExitClean);
  history.problems = {"unreadable"};
  EXPECT_EQ(history_status(history), kExitInconclusive);
  history.unexplained = {{{"packages.alpha", "1.0", ""}, "nobody tells"}};
  EXPECT_EQ(history_status(history), kExitDrift);
  history.events = {
      {.time = 60, .source = "uv", .text = "uv installed b 2", .changes = {{"packages.b", "1", "2"}}}};
  history.limits = {"not all"};
  EXPECT_EQ(history_text(history),
            "since 1970-01-01 00:00:00 UTC ()\n"
            "  1970-01-01 00:01:00 UTC  uv installed b 2\n"
            "    packages.b 1 -> 2\n"
            "  not recorded: packages.alpha 1.0 -> none: nobody tells\n"
            "  unknown: unreadable\n"
            "1 recorded event, 1 difference that nothing explains\n"
            "note: not all\n");
  const auto json = nlohmann::json::parse(history_json(history));
  EXPECT_EQ(json["unexplained"][0]["why"], "nobody tells");
  EXPECT_TRUE(json["unexplained"][0]["after"].is_null());
  EXPECT_EQ(json["events"][0]["time"], "1970-01-01 00:01:00 UTC");
}

}  // namespace
}  // namespace scankit::envspec
