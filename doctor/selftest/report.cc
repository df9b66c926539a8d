// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/selftest/selftest.h"

namespace scankit::selftest {

namespace {
using Json = nlohmann::ordered_json;

std::size_t count_of(const std::vector<Trial>& trials, Judgement wanted) {
  return static_cast<std::size_t>(std::ranges::count(trials, wanted, &Trial::judgement));
}

std::string cause_or_none(const std::string& slug) { return slug.empty() ? say("nothing") : slug; }

// The first word is padded to the same width in all cases; it is the second column of the table.
std::string answer(const Trial& trial) {
  switch (trial.judgement) {
    case Judgement::Named:
      return say("found     {}", cause_or_none(trial.expected));
    case Judgement::Missed:
      return say("MISSED    {}, doctor reported {}", cause_or_none(trial.expected), trial.named);
    case Judgement::NotPlanted:
      return say("FAILED    not injected: {}", trial.why);
    case Judgement::Failed:
      return say("FAILED    {}", trial.why);
    case Judgement::Skipped:
      return say("skipped   {}", trial.why);
  }
  return "";
}

// Replaces the directory, whose name is random, so that two runs print the same text.
std::string without_folder(std::string text, const std::string& folder) {
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "$SCRATCH");
  return text;
}

std::string verdict_line(const std::vector<Trial>& trials) {
  const std::size_t named = count_of(trials, Judgement::Named),
                    tried = trials.size() - count_of(trials, Judgement::Skipped);
  return say("{} of {} answers are correct, {} skipped", named, tried, trials.size() - tried);
}

// The doctor's command, for the reader to repeat. With --keep it works.
std::string again(const Trial& trial, const std::string& folder) {
  std::string command;
  for (const std::string& word : trial.again) command += (command.empty() ? "" : " ") + shell_quoted(word);
  return without_folder(std::move(command), folder);
}

}  // namespace

std::string selftest_text(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const Python& python = request.facts.python.value;
  std::string out =
      report::plain(say("Injected for {} ({} {})", python.requested, python.implementation, python.version),
                    true) +
      "\n";
  for (const Trial& trial : trials) {
    out += in_column(trial.fault, 17) + report::plain(answer(trial), true) + "\n";
    out += std::string(17, ' ') + said(trial.planted) + "\n";
    if (!trial.import_line.empty())
      out += std::string(17, ' ') + report::plain(without_folder(trial.import_line, request.folder), true) +
             "\n";
    // Printed for an answer that was wrong.
    if (trial.judgement != Judgement::Named && !trial.again.empty())
      out += std::string(17, ' ') + report::plain(again(trial, request.folder), true) + "\n";
  }
  return out + verdict_line(trials) + "\n";
}

std::string selftest_json(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const int status = exit_status_of(trials);
  Json json{{"$schema", "urn:scankit:selftest:1"},
            {"tool_version", request.facts.tool_version},
            {"python", request.facts.python.value.requested},
            {"verdict", status == 0 ? "passed" : "failed"},
            {"imports", request.import},
            {"faults", Json::array()}};
  for (const Trial& trial : trials)
    json["faults"].push_back(
        {{"fault", trial.fault},
         {"planted", trial.planted},
         {"expected", report::or_null(trial.expected)},
         {"outcome", judgement_word(trial.judgement)},
         {"named", report::or_null(trial.named)},
         {"why", report::or_null(trial.why)},
         {"import_error", report::or_null(without_folder(trial.import_line, request.folder))},
         {"command", trial.again}});
  return json_document(json);
}

namespace {

// A wrong answer is a failure of the doctor; what was not planted, or got no answer, an error of the test itself.
report::TestState state_of(Judgement judgement) {
  if (judgement == Judgement::Named) return report::TestState::Passed;
  if (judgement == Judgement::Skipped) return report::TestState::Skipped;
  return judgement == Judgement::Missed ? report::TestState::Failed : report::TestState::Error;
}

report::Problem problem_of(const Trial& trial, const std::string& folder) {
  report::Problem problem{.rule = std::string(judgement_word(trial.judgement)),
                          .title = trial.judgement == Judgement::Missed
                                       ? say("doctor did not find an injected fault")
                                       : say("a fault could not be tried"),
                          .subject = trial.fault,
                          .told = {answer(trial), trial.planted}};
  if (!trial.again.empty()) problem.repairs.push_back({say("repeat the diagnosis"), again(trial, folder)});
  return problem;
}

report::Table trials_table(const std::vector<Trial>& trials) {
  report::Table table{{say("fault"), say("result"), say("injected")}, {}};
  for (const Trial& trial : trials)
    table.rows.push_back(
        {report::as_code(trial.fault), report::as_text(answer(trial)), report::as_text(trial.planted)});
  return table;
}

std::vector<report::Metric> metrics_of(const std::vector<Trial>& trials, int exit_status) {
  report::Metric faults{"selftest_faults", "Injected faults by what doctor answered", {}};
  for (const Judgement judgement :
       {Judgement::Named, Judgement::Missed, Judgement::NotPlanted, Judgement::Failed, Judgement::Skipped})
    faults.samples.push_back(
        {{{"outcome", std::string(judgement_word(judgement))}}, std::to_string(count_of(trials, judgement))});
  return {report::exit_status_metric(exit_status), std::move(faults)};
}

}  // namespace

report::Document selftest_document(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const int status = exit_status_of(trials);
  const Python& python = request.facts.python.value;
  report::Document document{.command = "selftest",
                            .verdict_word = status == 0 ? "passed" : "failed",
                            .verdict = verdict_line(trials),
                            .tone = status == 0 ? report::Tone::Good : report::Tone::Error,
                            .exit_status = status,
                            .facts = {{"python", python.requested + " " + python.version}},
                            .metrics = metrics_of(trials, status),
                            .environment = python.requested,
                            .tool_version = request.facts.tool_version};
  report::Suite suite{"faults", {}};
  for (const Trial& trial : trials) {
    suite.tests.push_back({.group = "scankit.selftest",
                           .name = trial.fault,
                           .state = state_of(trial.judgement),
                           .type = std::string(judgement_word(trial.judgement)),
                           .message = trial.judgement == Judgement::Named ? "" : answer(trial)});
    if (trial.judgement != Judgement::Named && trial.judgement != Judgement::Skipped)
      document.problems.push_back(problem_of(trial, request.folder));
  }
  document.suites.push_back(std::move(suite));
  const std::size_t named = count_of(trials, Judgement::Named),
                    skipped = count_of(trials, Judgement::Skipped);
  document.blocks.push_back(
      report::Bar{say_n(trials.size(), "{} fault", "{} faults", trials.size()),
                  {{say("not found"), report::Tone::Error, trials.size() - named - skipped},
                   {say("found"), report::Tone::Good, named},
                   {say("skipped"), report::Tone::None, skipped}}});
  if (!document.problems.empty())
    document.blocks.push_back(
        report::PageSection{say("Failed"), {report::Problems{0, document.problems.size()}}});
  document.blocks.push_back(report::PageSection{say("Injected"), {trials_table(trials)}});
  return document;
}

report::Views selftest_views(const SelftestRequest& request, const std::vector<Trial>& trials) {
  return {.text = [&](const report::TextStyle&) { return selftest_text(request, trials); },
          .json = [&] { return selftest_json(request, trials); },
          .document = [&] { return selftest_document(request, trials); }};
}

}  // namespace scankit::selftest
