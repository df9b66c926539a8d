// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/gate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "doctor/base/files.h"

namespace scankit::gate {
namespace {
using Json = nlohmann::ordered_json;

TEST(GateStatus, FollowsThePrecedence) {
  EXPECT_EQ(gate_status({}), 0);
  EXPECT_EQ(gate_status({0, 0, 0}), 0);
  EXPECT_EQ(gate_status({0, 4, 0}), 4);
  EXPECT_EQ(gate_status({4, 7, 6}), 7);
  EXPECT_EQ(gate_status({0, 6, 1}), 6);
  EXPECT_EQ(gate_status({1, 2, 6}), 2);
  EXPECT_EQ(gate_status({2, 3, 1}), 3);
  EXPECT_EQ(gate_status({5, 1}), 5);
}

Json answer() {
  return Json::parse(
      R"({"verdict": "passed", "module": {"name": "m", "file": "/m.so", "problem": null, "message": null},
    "not_completed": null, "baseline": null, "timing": [],
    "cases": [{"id": "a", "device": "cpu", "state": "passed", "reasons": []},
              {"id": "b", "device": "cpu", "state": "passed", "reasons": []},
              {"id": "c", "device": "cuda:0", "state": "passed", "reasons": []}]})");
}

TEST(ValidateOutcomes, HoldAQuestionForEachDevice) {
  const auto outcomes = validate_outcomes(answer().dump());
  ASSERT_TRUE(outcomes) << english(outcomes.error().message);
  ASSERT_EQ(outcomes->size(), 3U);
  for (const Outcome& outcome : *outcomes) EXPECT_EQ(outcome.state, CheckState::Passed) << outcome.check;
}

TEST(ValidateOutcomes, NameWhatFailed) {
  Json json = answer();
  json["verdict"] = "failed";
  json["cases"][1]["state"] = "failed";
  json["cases"][1]["reasons"] = {"dA: relative error 0.5"};
  json["cases"][2]["state"] = "hung";
  const auto outcomes = validate_outcomes(json.dump());
  ASSERT_TRUE(outcomes);
  ASSERT_EQ((*outcomes)[1].findings.size(), 1U);
  const Finding& cpu = (*outcomes)[1].findings[0];
  EXPECT_EQ(cpu.cause, Cause::ValidationFailed);
  EXPECT_EQ(english(cpu.summary), "1 of 2 cases failed on cpu");
  EXPECT_EQ(cpu.evidence[0].fact, "/cases/1/reasons/0");
  EXPECT_EQ(cpu.evidence[0].value, "b: dA: relative error 0.5");
  EXPECT_EQ((*outcomes)[2].state, CheckState::Found);
}

TEST(ValidateOutcomes, TakeNothingForGreenThatIsNot) {
  const auto states = [](const Json& json) {
    const auto outcomes = validate_outcomes(json.dump());
    EXPECT_TRUE(outcomes) << english(outcomes.error().message);
    bool open = false, found = false;
    for (const Outcome& outcome : outcomes.value_or({})) {
      open = open || outcome.could_hide_error;
      found = found || outcome.state == CheckState::Found;
    }
    return std::string(found ? "found" : open ? "open" : "passed");
  };
  Json json = answer();
  json["verdict"] = "failed";
  EXPECT_EQ(states(json), "found");
  json["verdict"] = "inconclusive";
  EXPECT_EQ(states(json), "open");
  json["verdict"] = "a word of the future";
  EXPECT_EQ(states(json), "open");
  json = answer();
  json["cases"][0]["state"] = "not_run";
  EXPECT_EQ(states(json), "open");
  json = answer();
  json["not_completed"] = "it was killed";
  EXPECT_EQ(states(json), "open");
  json = answer();
  json["module"]["problem"] = "import_failed";
  EXPECT_EQ(states(json), "found");
  json = answer();
  json["baseline"] = {{"file", "old.json"}, {"problem", "another GPU"}};
  EXPECT_EQ(states(json), "open");
  json["baseline"]["problem"] = nullptr;
  json["timing"] = Json::parse(
      R"([{"pass": "fwd", "dtype": "fp32", "shape": {}, "baseline": {"ratio": [1.2, 1.4], "regressed": true}}])");
  EXPECT_EQ(states(json), "found");
}

// A module that does not import is one fault, of which the doctor knows the cause.
TEST(ValidateOutcomes, LeaveAFailedImportToTheDoctor) {
  Json json = answer();
  json["verdict"] = "failed";
  json["module"]["problem"] = "import_failed";
  json["module"]["message"] = "ImportError: libcudart.so.12: cannot open shared object file";
  json["cases"] = Json::array();
  auto validate = validate_outcomes(json.dump());
  ASSERT_TRUE(validate);
  ASSERT_EQ((*validate)[0].findings.size(), 1U);
  EXPECT_EQ(english((*validate)[0].findings[0].summary),
            "m does not import: ImportError: libcudart.so.12: cannot open shared object file");
  EXPECT_EQ((*validate)[0].findings[0].cause, Cause::MissingCudart) << "not that it computes wrong";
  leave_import_to_doctor({}, *validate);
  EXPECT_EQ((*validate)[0].state, CheckState::Found) << "a doctor that names nothing excuses nothing";
  Outcome other{.check = "libraries-found", .question = "?", .state = CheckState::Found};
  other.findings.push_back({.cause = Cause::MissingCudart, .subject = "/n.so", .module = "n", .summary = ""});
  leave_import_to_doctor({other}, *validate);
  EXPECT_EQ((*validate)[0].state, CheckState::Found) << "nor does one of another module";
  other.findings[0].module = "m";
  leave_import_to_doctor({other}, *validate);
  EXPECT_EQ((*validate)[0].state, CheckState::NotApplicable);
  EXPECT_TRUE((*validate)[0].findings.empty());
  EXPECT_EQ(english((*validate)[0].why), "m does not import");
}

TEST(ValidateOutcomes, RefuseWhatIsNotWhole) {
  const std::string text = answer().dump();
  for (std::size_t length = 0; length < text.size(); length += 7)
    EXPECT_FALSE(validate_outcomes(text.substr(0, length))) << length;
  for (const char* bad : {"[]", "1", "null", "{}", R"({"cases": 1})"})
    EXPECT_FALSE(validate_outcomes(bad)) << bad;
  std::mt19937 random(3);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same files in every run
  for (int round = 0; round < 2000; ++round) {
    std::string changed = text;
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
      changed[random() % changed.size()] = static_cast<char>(random() % 256);
    (void)validate_outcomes(changed).has_value();  // taken or refused, never a crash
  }
}

TEST(StepKey, ChangesWithWhatTheAnswerDependsOn) {
  const auto folder = TemporaryDirectory::create("scankit-gate-test");
  ASSERT_TRUE(folder);
  const std::string spec = path_join(folder->path(), "spec.yaml");
  ASSERT_TRUE(write_file_atomically(spec, "schema: 1\n"));
  Policy policy;
  policy.env_check.args = {"--spec", spec};
  GateOptions options;
  const StepCommand command = step_command(policy_steps()[2], policy, options, "/scankit");
  EXPECT_EQ(command.argv,
            (std::vector<std::string>{"/scankit", "--lang", "en", "env", "check", "--json", "--spec", spec}));
  const std::string key = step_key(command, policy, "text", "program", "environment");
  EXPECT_EQ(step_key(command, policy, "text", "program", "environment"), key);
  EXPECT_NE(step_key(command, policy, "texT", "program", "environment"), key);
  EXPECT_NE(step_key(command, policy, "text", "Program", "environment"), key);
  EXPECT_NE(step_key(command, policy, "text", "program", "Environment"), key);
  options.python = "/p";
  EXPECT_NE(step_key(step_command(policy_steps()[2], policy, options, "/scankit"), policy, "text", "program",
                     "environment"),
            key);
  ASSERT_TRUE(write_file_atomically(spec, "schema: 1\ndriver: \"1\"\n"));
  EXPECT_NE(step_key(command, policy, "text", "program", "environment"), key);
}

}  // namespace
}  // namespace scankit::gate
