// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/cli/commands.h"

namespace scankit::cli {
namespace {
using Json = nlohmann::json;

const std::string kMachine = SCANKIT_SOURCE_DIR "/doctor/tests/machines/cpu_torch211/snapshot.json";

struct Ran {
  int status = kExitUsage;  // what run_scankit() makes of a ParseError
  std::string out, err, refused;
};

Ran scankit(std::vector<std::string> words) {
  CLI::App app;
  Ran run;
  int status = kExitClean;
  add_doctor_commands(app, status);
  std::ranges::reverse(words);  // CLI11 takes a vector from its end
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(words);
    run.status = status;
  } catch (const CLI::ParseError& problem) {
    run.refused = problem.what();
  }
  run.out = testing::internal::GetCapturedStdout();
  run.err = testing::internal::GetCapturedStderr();
  return run;
}

TEST(DoctorCommand, StoresTheFactsThatItJudged) {
  const std::string file = testing::TempDir() + "/stored_snapshot.json";
  const Ran first = scankit({"doctor", "--from", kMachine, "--gpu", "sm_90", "--snapshot", file, "--json"});
  ASSERT_EQ(first.refused, "");
  const Ran second = scankit({"doctor", "--from", file, "--json"});
  EXPECT_EQ(second.status, first.status);
  const Json before = Json::parse(first.out), after = Json::parse(second.out);
  EXPECT_EQ(after["verdict"], before["verdict"]);
  EXPECT_EQ(after["findings"], before["findings"]);
  EXPECT_EQ(scankit({"doctor", "--from", kMachine, "--snapshot", "/no/such/folder/x.json"}).status,
            kExitUsage);
}

TEST(DoctorCommand, RefusesBadUsageBeforeItReadsAnything) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"doctor", "--fail-on", "fatal"},
           {"doctor", "--from", kMachine, "--python", "/usr/bin/python3"},
           {"doctor", "--from", kMachine, "--root", "/tmp"},
           {"doctor", "--root", "/tmp", "--import"},
           {"doctor", "--gpu", "h200"},
           {"doctor", "--gpu", "sm_90,90"},
           {"doctor", "--driver", "570"},
           {"doctor", "--report", "pdf=x"},
           {"doctor", "--module", "../x"},
           {"doctor", "--timeout", "-1"},
           {"doctor", "--import", "--no-import"},
           {"snapshot", "--from", kMachine},
           {"doctor", "--with-exports"},
           {"doctor", "--from", kMachine, "--with-exports", "--snapshot", "x"},
           {"explain", "--list", "missing_cudart"}}) {
    const Ran run = scankit(words);
    EXPECT_FALSE(run.refused.empty()) << words[1];
    EXPECT_TRUE(run.out.empty());
  }
}

TEST(DoctorCommand, GivesJsonAloneOnStandardOutput) {
  const Ran run = scankit({"doctor", "--from", kMachine, "--json"});
  EXPECT_EQ(run.status, kExitClean);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Json::parse(run.out)["verdict"], "healthy");
}

TEST(DoctorCommand, JudgesAStoredSnapshotForADescribedTarget) {
  const std::vector<std::string> words = {"doctor", "--from", kMachine, "--gpu"};
  const auto with = [&](const std::string& gpu) {
    auto all = words;
    all.push_back(gpu);
    all.insert(all.end(), {"--driver", "570.86", "--json"});
    return scankit(all);
  };
  EXPECT_EQ(Json::parse(with("none").out)["verdict"], "healthy");
  const Ran text = scankit({"doctor", "--from", kMachine, "--gpu", "sm_90", "--driver", "570.86"});
  EXPECT_NE(text.out.find("as described, not as probed: GPU sm_90, driver 570.86"), std::string::npos);
}

TEST(DoctorCommand, SaysInOneLineWhatIsNoRoot) {
  const Ran run = scankit({"doctor", "--root", "/proc/self/status"});
  EXPECT_EQ(run.status, kExitUsage);
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  EXPECT_EQ(run.out, "");
}

TEST(DoctorCommand, SaysInOneLineWhatIsWrongWithAStoredSnapshot) {
  const auto folder = TemporaryDirectory::create("cli");
  const std::string path = folder->path() + "/s.json";
  for (const char* text :
       {"", "{}", "[1]", "{\"schema\": 99}", "{\"schema\": 1, \"python\": 5}", "\x1b[31m"}) {
    std::ofstream(path) << text;
    const Ran run = scankit({"doctor", "--from", path});
    EXPECT_EQ(run.status, kExitUsage) << text;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_NE(run.err.find(path), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find('\x1b'), std::string::npos);
  }
}

TEST(DoctorCommand, WritesEveryReportThatItCan) {
  const auto folder = TemporaryDirectory::create("cli");
  const std::string json = folder->path() + "/r.json", text = folder->path() + "/r.txt";
  const Ran run = scankit({"doctor", "--from", kMachine, "--report", "json=" + json, "--report",
                           "json=/nonexistent/r", "--report", "text=" + text});
  EXPECT_EQ(run.status, kExitUsage);
  EXPECT_EQ(Json::parse(*read_whole_file(json))["verdict"], "healthy");
  EXPECT_NE(read_whole_file(text)->find("healthy"), std::string::npos);
}

TEST(ExitStatus, FollowsSeverityThenDoubt) {
  Report report;
  report.verdict = Verdict::Unknown;
  EXPECT_EQ(exit_status_of(report, "error"), kExitInconclusive);
  report.findings.push_back({.cause = Cause::TorchNotImportedFirst});
  EXPECT_EQ(exit_status_of(report, "warning"), kExitInconclusive);
  EXPECT_EQ(exit_status_of(report, "note"), kExitFindings);
  report.findings.push_back({.cause = Cause::MissingCudart});
  report.verdict = Verdict::Broken;
  EXPECT_EQ(exit_status_of(report, "error"), kExitFindings);
  EXPECT_EQ(exit_status_of(report, "never"), kExitClean);
  report.outcomes.push_back({.check = "x", .state = CheckState::Crashed});
  EXPECT_EQ(exit_status_of(report, "never"), kExitInternal);
}

TEST(ExplainCommand, KnowsEveryCauseThatTheDoctorNames) {
  for (const CauseInfo& cause : all_causes()) {
    const Ran run = scankit({"explain", std::string(cause.slug)});
    EXPECT_EQ(run.status, kExitClean) << cause.slug;
    EXPECT_NE(run.out.find(cause.title), std::string::npos) << cause.slug;
  }
}

TEST(ExplainCommand, ListsSearchesAndReadsAPastedMessage) {
  const Ran list = scankit({"explain"});
  EXPECT_EQ(list.status, kExitClean);
  EXPECT_EQ(list.out, scankit({"explain", "--list"}).out);
  EXPECT_NE(list.out.find("torch_version_mismatch"), std::string::npos);
  const Ran found = scankit({"explain", "undefined", "symbol"});
  EXPECT_EQ(found.status, kExitClean);
  EXPECT_NE(found.out.find("scankit explain torch_version_mismatch"), std::string::npos) << found.out;
  EXPECT_LE(std::ranges::count(found.out, '\n'), 7);
  const Ran pasted =
      scankit({"explain", "ImportError: libcudart.so.12: cannot open shared object file: No such file"});
  EXPECT_EQ(pasted.status, kExitClean);
  EXPECT_TRUE(pasted.out.starts_with("missing_cudart: ")) << pasted.out;
  EXPECT_NE(pasted.out.find("\n  scankit explain missing_cudart\n"), std::string::npos) << pasted.out;
  const Ran hyphens = scankit({"explain", "torch-version-mismatch"});
  EXPECT_TRUE(hyphens.out.starts_with("torch_version_mismatch: "));
}

TEST(ExplainCommand, SaysWhatWasProbablyMeant) {
  const Ran typo = scankit({"explain", "torch_version_mismach"});
  EXPECT_EQ(typo.status, kExitUsage);
  EXPECT_EQ(typo.out, "");
  EXPECT_NE(typo.err.find("did you mean torch_version_mismatch?"), std::string::npos) << typo.err;
  EXPECT_EQ(scankit({"explain", "quince", "marmalade"}).status, kExitUsage);
}

}  // namespace
}  // namespace scankit::cli
