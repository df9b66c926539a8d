// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "doctor/base/date.h"
#include "doctor/base/files.h"
#include "doctor/base/mutate_test.h"
#include "envspec/spec/fields.h"

namespace scankit::gate {
namespace {

const std::string kGood = R"(schema: 1
fail_on: warning
record: [.venv]
causes:
  several_copies: {severity: warning}
  glibc_too_old:
    allowed_until: 2027-01-31
    reason: the images are replaced in January
  missing_cudart:
steps:
  doctor:
    timeout: 120
    args: [--all, --timeout=30]
  env_check: {enabled: false}
  validate: {args: [--module, causal_conv1d_cuda, --seed, 7]}
)";

// "message | hint"
std::string refused(const std::string& text) {
  const auto policy = parse_policy(text, "p.yaml");
  if (policy) return "taken";
  EXPECT_EQ(english(policy.error().message).find('\n'), std::string::npos) << english(policy.error().message);
  return english(policy.error().message) + " | " + english(policy.error().hint);
}

void expect_refused(const std::string& text, const std::string& said) {
  EXPECT_NE(refused(text).find(said), std::string::npos) << text.substr(0, 200) << "\n" << refused(text);
}

TEST(Policy, HoldsWhatTheFileSays) {
  const auto policy = parse_policy(kGood, "p.yaml");
  ASSERT_TRUE(policy) << english(policy.error().message);
  EXPECT_EQ(policy->fail_on, "warning");
  ASSERT_EQ(policy->causes.size(), 3U);
  EXPECT_EQ(policy->causes[0].cause, Cause::SeveralCopies);
  EXPECT_EQ(policy->causes[0].severity, "warning");
  EXPECT_EQ(policy->causes[1].allowed_until, "2027-01-31");
  EXPECT_EQ(policy->causes[1].severity, "error");
  EXPECT_EQ(policy->causes[1].line, 6U);
  EXPECT_EQ(policy->records[0].folder, ".venv");
  EXPECT_EQ(policy->causes[2].severity, "error");
  EXPECT_EQ(policy->doctor.timeout_s, 120);
  EXPECT_EQ(policy->doctor.args, (std::vector<std::string>{"--all", "--timeout=30"}));
  EXPECT_EQ(policy->env_check.enabled, false);
  EXPECT_EQ(policy->doctor.enabled, std::nullopt);
  EXPECT_EQ(policy->validate.args.back(), "7");
}

TEST(Policy, NamesWhatItDoesNotKnowAndTheNearestThatItDoes) {
  expect_refused("schema: 1\ncuases: {}\n",
                 "p.yaml:2:1: unknown field \"cuases\" | did you mean \"causes\"?");
  expect_refused("schema: 1\nfail_om: error\n", "did you mean \"fail_on\"?");
  expect_refused("schema: 1\ncauses:\n  glibc_to_old: {}\n",
                 "p.yaml:3:3: unknown cause \"glibc_to_old\" | did you mean \"glibc_too_old\"?");
  expect_refused("schema: 1\ncauses:\n  everything: {}\n", "scankit explain --list lists all");
  expect_refused("schema: 1\ncauses:\n  glibc_too_old: {severty: note}\n",
                 "p.yaml:3:19: unknown field \"causes.glibc_too_old.severty\" | did you mean \"severity\"?");
  expect_refused("schema: 1\nsteps:\n  docter: {}\n", "p.yaml:3:3: unknown field \"steps.docter\"");
  expect_refused("schema: 1\nsteps:\n  doctor: {timeuot: 3}\n", "did you mean \"timeout\"?");
  expect_refused(
      "schema: 1\nsteps:\n  doctor: {args: [--gpus, sm_90]}\n",
      "p.yaml:3:19: steps.doctor.args: \"--gpus\" is not an option that a policy may set | did you mean");
}

// A stranger's pull request changes the policy: it may not run code as root, nor say where files go.
TEST(Policy, SetsNoOptionThatWritesOrRuns) {
  for (const char* option : {"--import", "--report", "--report=html=/etc/x", "--snapshot", "--python",
                             "--json", "--out", "--lang", "--fail-on", "--", "-v", "--help", "--budget"})
    for (const char* step : {"doctor", "env_check", "validate"})
      expect_refused("schema: 1\nsteps:\n  " + std::string(step) + ": {args: [\"" + option + "\"]}\n",
                     "is not an option that a policy may set");
  expect_refused("schema: 1\nsteps:\n  doctor: {args: [restore]}\n",
                 "is not an option that a policy may set");
}

TEST(Policy, SaysWhereATypeIsWrong) {
  expect_refused("schema: 1\nfail_on: fatal\n",
                 "p.yaml:2:10: fail_on: \"fatal\" is not one of: error, warning, note");
  expect_refused("schema: 1\nfail_on: [error]\n", "p.yaml:2:10: fail_on: expected one value");
  expect_refused("schema: 1\ncauses: [glibc_too_old]\n",
                 "p.yaml:2:9: causes: expected causes with their fields");
  expect_refused("schema: 1\ncauses:\n  glibc_too_old: warning\n", "expected keys with values below it");
  expect_refused("schema: 1\nsteps:\n  doctor:\n", "p.yaml:4:1: steps.doctor: expected keys with values");
  expect_refused("schema: 1\nsteps: doctor\n", "steps: expected keys with values");
  expect_refused("schema: 1\nsteps:\n  doctor: {enabled: \"yes\"}\n", "expected true or false");
  expect_refused("schema: 1\nsteps:\n  doctor: {enabled: 1}\n", "expected true or false");
  for (const char* bad : {"0", "-1", "1.5", "86401", "soon", "[1]", "0x10", "99999999999999999999", ""})
    expect_refused("schema: 1\nsteps:\n  doctor: {timeout: " + std::string(bad) + "}\n",
                   "a whole number of seconds");
  expect_refused("schema: 1\nsteps:\n  doctor: {args: --all}\n", "expected a list, such as");
  expect_refused("schema: 1\nsteps:\n  doctor: {args: [[--all]]}\n", "an option or its value");
  expect_refused("- schema: 1\n", "p.yaml:1:1: expected keys with values");
  expect_refused("fail_on: error\n", "does not say which schema it has");
  expect_refused("schema: 2\nfuture: 1\n", "this is schema 2, and this scankit supports up to 1");
  expect_refused("", "p.yaml is empty | scankit ci init policy writes one");
  expect_refused("schema: 1\nschema: 1\n", "occurs a second time;");
  expect_refused("schema: 1\ncauses:\n  glibc_too_old: {}\n  glibc_too_old: {}\n",
                 "p.yaml:4:3: \"glibc_too_old\"");
}

TEST(Policy, WantsADayThatExistsAndAReason) {
  const auto with = [](const std::string& day, const std::string& reason) {
    return "schema: 1\ncauses:\n  glibc_too_old: {allowed_until: " + day + reason + "}\n";
  };
  EXPECT_EQ(refused(with("2028-02-29", ", reason: x")), "taken");
  for (const char* bad : {"2027-02-29", "2027-13-01", "2027-00-10", "2027-04-31", "27-01-01", "2027-1-1",
                          "tomorrow", "2027-01-01T00:00:00Z", "+027-01-01", "2027-01--1", "20270101"})
    expect_refused(with(bad, ", reason: x"), "expected a date such as 2027-01-31");
  expect_refused(with("2027-01-01", ""), "p.yaml:3:3: causes.glibc_too_old: allowed_until needs a reason");
  expect_refused("schema: 1\ncauses:\n  glibc_too_old: {reason: x}\n", "reason belongs to allowed_until,");
  expect_refused(with("2027-01-01", ", reason: \"\""), "one value such as");
  expect_refused(with("2027-01-01", ", reason: " + std::string(600, 'x')), "longer than 500 bytes");
}

TEST(Policy, RefusesBombsQuickly) {
  const auto start = std::chrono::steady_clock::now();
  expect_refused("schema: 1\na: &a [x]\n", "anchors (&name) are not supported");
  expect_refused("schema: !!python/object/apply:os.system [ls]\n", "tags (!name) are not supported");
  expect_refused("schema: 1\ncauses: " + std::string(100000, '['), "p.yaml:2:");
  std::string keys = "schema: 1\nsteps:\n  doctor:\n    args: [";
  while (keys.size() < yaml::kYamlBytes - 20) keys += "--all,";
  expect_refused(keys + "]\n", "more than 10000 values");
  expect_refused(std::string(1u << 20, 'x'), "is longer than 256 KiB");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// Any change of a good file is taken or refused in one line, and what is taken never allows more than a
// reader of the file sees: an allowance has its day and its reason.
TEST(Policy, SurvivesMutations) {
  std::mt19937 random(9);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same files in every run
  std::size_t taken = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = test::mutated(kGood, random);
    const auto policy = parse_policy(text, "p.yaml");
    if (!policy) {
      EXPECT_EQ(english(policy.error().message).find('\n'), std::string::npos) << text;
      continue;
    }
    ++taken;
    for (const CauseRule& rule : policy->causes) {
      EXPECT_EQ(rule.allowed_until.empty(), rule.reason.empty()) << text;
      EXPECT_TRUE(rule.allowed_until.empty() || is_date(rule.allowed_until)) << text;
    }
    for (const PolicyStep& step : policy_steps()) {
      EXPECT_GE((*policy.*(step.place)).timeout_s, 0) << text;
      for (const std::string& word : (*policy.*(step.place)).args) EXPECT_NE(word, "--import") << text;
    }
  }
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, 4000U);
}

// One directory, a list, or each with the lock that it is made from.
TEST(Policy, NamesEnvironmentsByTheirRecords) {
  const auto records = [](const std::string& value) {
    const auto policy = parse_policy("schema: 1\nrecord: " + value + "\n", "p.yaml");
    EXPECT_TRUE(policy) << english(policy.error().message);
    std::string text;
    for (const RecordRule& rule : policy ? policy->records : std::vector<RecordRule>())
      text += rule.folder + (rule.lock.empty() ? ";" : "=" + rule.lock + ";");
    return text;
  };
  EXPECT_EQ(records(".venv"), ".venv;");
  EXPECT_EQ(records("[.venv, /opt/train]"), ".venv;/opt/train;");
  EXPECT_EQ(records("{/opt/train: locks/train.lock, .venv: }"), "/opt/train=locks/train.lock;.venv;");
  expect_refused("schema: 1\nrecord:\n", "record: expected the directory of an environment, such as .venv");
  for (const char* empty : {"[]", "{}"})
    expect_refused("schema: 1\nrecord: " + std::string(empty) + "\n",
                   "record: expected the directory of an environment, such as .venv");
  expect_refused("schema: 1\nrecord: [--json]\n", "the directory of an environment");
  expect_refused("schema: 1\nrecord: {.venv: [a]}\n", "record..venv: expected");
  expect_refused("schema: 1\nrecord: [[.venv]]\n", "the directory of an environment");
  expect_refused("schema: 1\nsteps: {record: {enabled: true}}\n",
                 "it is enabled, and record names no environment");
  EXPECT_EQ(refused("schema: 1\nrecord: .venv\nsteps: {record: {enabled: true, timeout: 5}}\n"), "taken");
}

// What the repository and the README hold is what the table says. SCANKIT_UPDATE_GOLDEN=1 writes the schema.
TEST(PolicyFields, AreWhatThePublishedSchemaAndTheReadmeSay) {
  const std::string folder = SCANKIT_SOURCE_DIR "/ci/";
  if (std::getenv("SCANKIT_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(folder + "gate/schema/policy-1.json", policy_schema()));
  }
  EXPECT_EQ(read_whole_file(folder + "gate/schema/policy-1.json").value_or(""), policy_schema());
  EXPECT_NE(read_whole_file(folder + "README.md").value_or("").find(policy_fields_markdown()),
            std::string::npos)
      << "ci/README.md should hold\n"
      << policy_fields_markdown();
  EXPECT_TRUE(std::regex_match("2027-01-31", std::regex(std::string(kDatePattern))));
  const auto schema = nlohmann::json::parse(policy_schema());
  EXPECT_EQ(schema["properties"]["causes"]["propertyNames"]["enum"].size(), all_causes().size());
}

// One report with a finding of each severity, and a symptom of the first.
Report found() {
  Report report;
  report.asked = Asked::Gate;
  Outcome outcome{.check = "a", .question = "A?", .state = CheckState::Found};
  outcome.findings = {
      {.cause = Cause::TorchVersionMismatch, .subject = "m.so", .module = "m", .summary = "old"},
      {.cause = Cause::ImportCrash, .subject = "m.so", .module = "m", .summary = "dies"},
      {.cause = Cause::NinjaMissing, .subject = "ninja", .module = "", .summary = "no ninja"},
      {.cause = Cause::ModuleNotBuilt,
       .subject = "n",
       .module = "n",
       .summary = "nobody needs it",
       .circumstances = {Circumstance::OnlyNearbyFilesNeedIt}}};
  report.outcomes.push_back(outcome);
  return report;
}

std::string judged(const std::string& rules, const std::string& today) {
  const auto policy = parse_policy("schema: 1\n" + rules, "p.yaml");
  if (!policy) return english(policy.error().message);
  Report report = found();
  apply_policy(*policy, today, report);
  std::string text;
  for (const Finding& finding : report.findings)
    text += std::string(info(finding.cause).slug) + "=" +
            (finding.severity() == Severity::Error     ? "error"
             : finding.severity() == Severity::Warning ? "warning"
                                                       : "note") +
            " ";
  return text + (report.verdict == Verdict::Broken ? "failed" : "passed");
}

TEST(PolicyApplied, GivesEachFindingTheSeverityOfItsRule) {
  EXPECT_EQ(
      judged("", "2026-06-01"),
      "torch_version_mismatch=error import_crash=error ninja_missing=warning module_not_built=note failed");
  EXPECT_EQ(
      judged("fail_on: warning\n", "2026-06-01"),
      "torch_version_mismatch=error import_crash=error ninja_missing=error module_not_built=note failed");
  EXPECT_EQ(judged("causes: {torch_version_mismatch: {severity: warning}}\n", "2026-06-01"),
            "torch_version_mismatch=warning import_crash=warning ninja_missing=warning module_not_built=note "
            "passed");
  // Only the symptom is named: its cause still fails.
  EXPECT_EQ(judged("causes: {import_crash: {severity: note}}\n", "2026-06-01").substr(0, 29),
            "torch_version_mismatch=error ");
  // What the doctor lowered is no fault under a rule that names its cause.
  EXPECT_NE(judged("causes: {module_not_built: }\n", "2026-06-01").find("module_not_built=note"),
            std::string::npos);
}

// The severity of each finding with a rule of `causes`, in the order of the report: "error note".
std::string severities(std::vector<Finding> findings, const std::string& causes) {
  const auto policy = parse_policy("schema: 1\ncauses: {" + causes + "}\n", "p.yaml");
  if (!policy) return english(policy.error().message);
  Report report;
  report.outcomes.push_back({.check = "a", .question = "A?", .state = CheckState::Found});
  report.outcomes[0].findings = std::move(findings);
  apply_policy(*policy, "2026-06-01", report);
  std::string text;
  for (const Finding& finding : report.outcomes[0].findings)
    text += (text.empty() ? "" : " ") + std::string(finding.severity() == Severity::Error     ? "error"
                                                    : finding.severity() == Severity::Warning ? "warning"
                                                                                              : "note");
  return text;
}

TEST(PolicyApplied, LowersASymptomAsFarAsItsCauseAndNoFurther) {
  const std::vector<Finding> both = {
      {.cause = Cause::TorchVersionMismatch, .subject = "m.so", .module = "m", .summary = "old"},
      {.cause = Cause::ImportCrash, .subject = "m.so", .module = "m", .summary = "dies"}};
  EXPECT_EQ(severities(both, "torch_version_mismatch: {severity: note}"), "note note");
  EXPECT_EQ(severities(both, "torch_version_mismatch: {severity: warning}"), "warning warning");
  const std::string until = "torch_version_mismatch: {reason: soon, allowed_until: ";
  EXPECT_EQ(severities(both, until + "2026-06-01}"), "note note");
  EXPECT_EQ(severities(both, until + "2026-05-31}"), "error error");
  EXPECT_EQ(severities(both, until + "2026-05-31, severity: warning}"), "warning warning");
}

TEST(PolicyApplied, KeepsWhatFollowsFromAnotherCauseOfTheModule) {
  EXPECT_EQ(severities({{.cause = Cause::CpuOnlyTorch, .subject = "torch", .module = "torch", .summary = "a"},
                        {.cause = Cause::DriftTorch, .subject = "torch", .module = "torch", .summary = "b"},
                        {.cause = Cause::DriftCuda, .subject = "torch", .module = "torch", .summary = "c"}},
                       "cpu_only_torch: {severity: note}"),
            "note error error");
}

// Each of these differs in one thing from the symptom of the cause that the rule names, and has no cause.
TEST(PolicyApplied, TakesNoFindingForTheSymptomThatItResembles) {
  const Finding cause{
      .cause = Cause::TorchVersionMismatch, .subject = "m.so", .module = "m", .summary = "old"};
  const Finding symptom{.cause = Cause::ImportCrash, .subject = "m.so", .module = "m", .summary = "dies"};
  const std::string rule = "torch_version_mismatch: {severity: note}";
  EXPECT_EQ(severities({cause, symptom}, rule), "note note");
  Finding of_another_module = symptom;
  of_another_module.module = "n";
  EXPECT_EQ(severities({cause, symptom, of_another_module}, rule), "note note error");
  of_another_module.subject = "n.so";
  EXPECT_EQ(severities({cause, symptom, of_another_module}, rule), "note note error");
  of_another_module.subject = "m.so", of_another_module.summary = "dies, too";
  EXPECT_EQ(severities({cause, symptom, of_another_module}, rule), "note note error");
  Finding of_another_cause = symptom;
  of_another_cause.cause = Cause::NoDriverLibcuda;
  EXPECT_EQ(severities({cause, symptom, of_another_cause}, rule), "note note error");
}

TEST(PolicyApplied, AllowsThroughTheLastDayAndNotADayLonger) {
  const std::string rule = "causes: {torch_version_mismatch: {allowed_until: 2026-06-30, reason: soon}}\n";
  EXPECT_TRUE(judged(rule, "2026-06-30").ends_with("passed")) << judged(rule, "2026-06-30");
  EXPECT_TRUE(judged(rule, "2026-07-01").ends_with("failed")) << judged(rule, "2026-07-01");
  EXPECT_TRUE(judged(rule, "2025-12-31").ends_with("passed"));
}

TEST(PolicyApplied, SaysThatAnAllowanceEnded) {
  const auto policy = parse_policy(
      "schema: 1\ncauses:\n  torch_version_mismatch: {allowed_until: 2026-06-30, reason: soon}\n"
      "  glibc_too_old: {allowed_until: 2026-06-30, reason: old image}\n"
      "  missing_cudart: {severity: warning}\n"  // was never an allowance
      "  driver_too_old: {allowed_until: 2026-07-01, reason: reboot}\n",
      "p.yaml");
  ASSERT_TRUE(policy);
  Report report = found();
  apply_policy(*policy, "2026-07-01", report);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(english(report.findings[0].summary), "old (its allowance expired on 2026-06-30: soon)");
  ASSERT_TRUE(report.findings[0].demanded_by);
  EXPECT_EQ(report.findings[0].demanded_by->line, 3U);
  const auto ended = std::ranges::find(report.findings, Cause::AllowanceExpired, &Finding::cause);
  ASSERT_NE(ended, report.findings.end());
  EXPECT_EQ(ended->severity(), Severity::Warning);
  EXPECT_EQ(english(ended->summary),
            "glibc_too_old was allowed until 2026-06-30 (old image), and it is no longer found");
  EXPECT_EQ(ended->demanded_by->line, 4U);
  EXPECT_EQ(std::ranges::count(report.findings, Cause::AllowanceExpired, &Finding::cause), 1);
}

}  // namespace
}  // namespace scankit::gate
