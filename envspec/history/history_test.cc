// SPDX-License-Identifier: Apache-2.0
#include "envspec/history/history.h"

#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

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
}

// Packages whose times are close together are one event, but never those of two installers.
TEST(EnvironmentHistory, OneRunOfAnInstallerIsOneEvent) {
  const auto events =
      installations({package("b", "pip", 1005), package("a", "pip", 1000, true), package("c", "uv", 1003),
                     package("d", "pip", 5000), package("e", "", 1001)});
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
  const std::time_t time = events[1].time;
  struct tm fields {};
  ::localtime_r(&time, &fields);
  EXPECT_EQ(fields.tm_hour, 10);
  EXPECT_EQ(fields.tm_mday, 23);
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
