// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/report/document.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

// What a validation shows on a page, to CI servers and to collectors. plots.cc draws.
namespace scankit::validate {
namespace {

bool cannot_be_used(const Validation& v) {
  return v.module_problem == ModuleProblem::ImportFailed || v.module_problem == ModuleProblem::LacksFunctions;
}

// A wrong result, or a process that was lost.
std::string rule_of(const CaseResult& c) {
  if (c.id == "own-test" && c.state == CaseState::Failed) return "test_failed";
  return c.state == CaseState::Failed ? "wrong_result" : c.state == CaseState::Hung ? "hung" : "crashed";
}

std::string title_of(const CaseResult& c) {
  if (c.id == "own-test" && c.state == CaseState::Failed) return say("the test failed");
  if (c.state == CaseState::Failed) return say("a result is wrong");
  return c.state == CaseState::Hung ? say("a call did not return") : say("the process crashed");
}

report::Problem problem_of(const CaseResult& c, const Validation& v) {
  return {.rule = rule_of(c),
          .title = title_of(c),
          .subject = c.device + " " + c.id,
          .module = v.module,
          .told = c.reasons};
}

// In the order of judge(): the module, its cases, then the baseline.
std::vector<report::Problem> problems_of(const Validation& v) {
  std::vector<report::Problem> problems;
  if (cannot_be_used(v))
    problems.push_back({.rule = "module_unusable",
                        .title = say("the module cannot be used"),
                        .subject = v.module_file.empty() ? v.module : v.module_file,
                        .module = v.module,
                        .told = {v.module_message}});
  for (const CaseResult& c : v.cases)
    if (c.state != CaseState::Passed && c.state != CaseState::NotRun) problems.push_back(problem_of(c, v));
  for (const AgainstBaseline& c : v.compared)
    if (c.regressed)
      problems.push_back({.rule = "slower",
                          .title = say("a pass has become slower"),
                          .subject = name_of(v.timings[c.timing]),
                          .module = v.module,
                          .told = {say("at least {:.3f} times as long as in the baseline", c.low)}});
  return problems;
}

// What the other module of --against gets wrong, which is no part of the verdict, and what was not run.
report::Table cases_table(const std::vector<CaseResult>& cases, bool (*wanted)(CaseState)) {
  report::Table table{{say("case"), say("reason")}, {}};
  for (const CaseResult& c : cases)
    if (wanted(c.state))
      table.rows.push_back({report::as_code(c.device + " " + c.id),
                            report::as_text(c.reasons.empty() ? "" : c.reasons.front())});
  return table;
}

// What each launched kernel takes of the GPU. "?" where the driver was not asked.
report::Table kernels_table(const Validation& v) {
  report::Table table{{say("kernel"), say("registers"), say("stack"), say("shared"), say("threads"),
                       say("blocks/SM"), say("occupancy"), say("waves"), say("bank conflicts"), say("of")},
                      {}};
  for (const KernelUse& k : v.kernels) {
    const Fit fit = fit_of(k, v);
    const std::string cells[] = {k.unit + " " + k.name,
                                 std::to_string(k.registers),
                                 std::to_string(k.stack_bytes),
                                 std::to_string(k.static_shared_bytes + k.dynamic_shared_bytes),
                                 std::to_string(k.threads),
                                 fit.known ? std::to_string(k.blocks_per_multiprocessor) : "?",
                                 fit.known ? fmt::format("{:.2f} %", 100 * fit.occupancy) : "?",
                                 fit.known ? fmt::format("{:.2f}", fit.waves) : "?",
                                 k.bank_conflicts ? fmt::format("{:.2f} %", 100 * *k.bank_conflicts) : "-",
                                 k.of};
    std::vector<report::Spans> row;
    for (const std::string& cell : cells) row.push_back(report::as_text(cell));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Validation& v) {
  const std::pair<std::string, std::string> all[] = {
      {"module", v.module_file.empty() ? v.module : v.module_file},
      {"python", v.python + (v.python_version.empty() ? "" : " " + v.python_version)},
      {"torch", v.torch_version},
      {"gpu", gpus_in_words(v)},
      {"cpu", v.cpu},
      {"seed", std::to_string(v.seed)},
      {"mode", v.mode},
      {say("compared with"), v.against_file}};
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& fact : all)
    if (!fact.second.empty()) facts.push_back(fact);
  return facts;
}

void add_table(std::vector<report::Block>& blocks, std::string title, report::Table table) {
  if (!table.rows.empty()) blocks.push_back(report::PageSection{std::move(title), {std::move(table)}});
}

// One bar for each device.
void add_bars(std::vector<report::Block>& blocks, const Validation& v) {
  std::map<std::string, std::array<std::size_t, 3>> counts;  // passed, failed, not run
  for (const CaseResult& c : v.cases)
    ++counts[c.device][c.state == CaseState::Passed ? 0 : c.state == CaseState::NotRun ? 2 : 1];
  for (const auto& [device, n] : counts) {
    const std::size_t all = n[0] + n[1] + n[2];
    blocks.push_back(report::Bar{say_n(all, "{}: {} case", "{}: {} cases", device, all),
                                 {{say("failed"), report::Tone::Error, n[1]},
                                  {say("not run"), report::Tone::Unknown, n[2]},
                                  {say("passed"), report::Tone::Good, n[0]}}});
  }
}

std::vector<report::Block> blocks_of(const Validation& v, std::size_t problems) {
  std::vector<report::Block> blocks;
  add_bars(blocks, v);
  report::Table facts{{say("item"), say("value")}, {}};
  for (const auto& [name, value] : facts_of(v))
    facts.rows.push_back({report::as_text(name), report::as_code(value)});
  blocks.push_back(report::PageSection{say("Looked at"), {std::move(facts)}, report::Fold::FoldedInMarkdown});
  if (problems > 0) blocks.push_back(report::PageSection{say("Failed"), {report::Problems{0, problems}}});
  add_table(blocks, say("Not run"), cases_table(v.cases, [](CaseState s) { return s == CaseState::NotRun; }));
  report::PageSection correctness{say("Correctness"), {}};
  if (report::Plot plot = error_plot(v); !plot.points.empty()) correctness.blocks.push_back(std::move(plot));
  blocks.push_back(std::move(correctness));
  report::PageSection speed{say("Speed"), speed_figures(v)};
  if (report::Table kernels = kernels_table(v); !kernels.rows.empty())
    speed.blocks.push_back(std::move(kernels));
  blocks.push_back(std::move(speed));
  add_table(blocks, say("What {} gets wrong", v.against), cases_table(v.against_cases, [](CaseState s) {
              return s != CaseState::NotRun && s != CaseState::Passed;
            }));
  return blocks;
}

// A colon would split class names in some viewers, so that "cuda:0" becomes "cuda_0".
std::string group_of(std::string device) {
  std::ranges::replace(device, ':', '_');
  return "scankit.validate." + device;
}

// A wrong result is a failure, and a lost process an error. A case that was not run is skipped, which CI servers show neither
// green nor red.
report::Test test_of(const CaseResult& c) {
  report::Test test{.group = group_of(c.device), .name = c.id};
  if (c.state == CaseState::Passed) return test;
  test.state = c.state == CaseState::NotRun   ? report::TestState::Skipped
               : c.state == CaseState::Failed ? report::TestState::Failed
                                              : report::TestState::Error;
  test.type = rule_of(c);
  test.message = c.reasons.empty() ? say("not run") : c.reasons.front();
  if (c.state != CaseState::NotRun) test.details = c.reasons;
  return test;
}

// One suite for each device, and further ones for speed, the module and the run where there is something to say. A module that
// cannot be used has no cases; without its suite the report would be empty and look green.
std::vector<report::Suite> suites_of(const Validation& v) {
  std::map<std::string, report::Suite> suites;
  for (const CaseResult& c : v.cases) suites[c.device].tests.push_back(test_of(c));
  for (const AgainstBaseline& c : v.compared) {
    const Timing& t = v.timings[c.timing];
    report::Test test{.group = group_of("speed." + t.device), .name = shape_name(t)};
    if (c.regressed) {
      test.state = report::TestState::Failed;
      test.type = "slower";
      test.message = say("at least {:.3f} times as long as in the baseline", c.low);
    }
    suites["speed"].tests.push_back(std::move(test));
  }
  if (cannot_be_used(v))
    suites["module"].tests.push_back({.group = group_of("module"),
                                      .name = v.module,
                                      .state = report::TestState::Failed,
                                      .type = "module",
                                      .message = v.module_message});
  const std::string open = !v.blocked.empty() ? v.blocked : v.baseline_problem;
  if (!open.empty() && !cannot_be_used(v))
    suites["run"].tests.push_back({.group = group_of("run"),
                                   .name = "completed",
                                   .state = report::TestState::Error,
                                   .type = "not_completed",
                                   .message = open});
  std::vector<report::Suite> list;
  for (auto& [name, suite] : suites) {
    suite.name = name;
    list.push_back(std::move(suite));
  }
  return list;
}

std::string word(CaseState state) {
  switch (state) {
    case CaseState::Passed:
      return "passed";
    case CaseState::Failed:
      return "failed";
    case CaseState::Crashed:
      return "crashed";
    case CaseState::Hung:
      return "hung";
    case CaseState::NotRun:
      return "not_run";
  }
  return "";
}

std::string word(Verdict verdict) {
  if (verdict == Verdict::Passed) return "passed";
  return verdict == Verdict::Failed ? "failed" : "inconclusive";
}

// Cases are counted; each timed pass is a series, in seconds as Prometheus has durations.
std::vector<report::Metric> metrics_of(const Validation& v, int exit_status) {
  report::Metric verdicts{"verdict", "1 for the current verdict", {}};
  for (const Verdict verdict : {Verdict::Passed, Verdict::Failed, Verdict::Inconclusive})
    verdicts.samples.push_back({{{"verdict", word(verdict)}}, v.verdict == verdict ? "1" : "0"});
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  for (const CaseResult& c : v.cases) ++counts[{c.device, word(c.state)}];
  report::Metric cases{"validation_cases", "Cases by device and by what they came to", {}};
  for (const auto& [key, n] : counts)
    cases.samples.push_back({{{"device", key.first}, {"state", key.second}}, std::to_string(n)});
  report::Metric times{"validation_seconds", "Median time of a pass of the module", {}};
  for (const Timing& t : v.timings)
    if (const double ms = milliseconds(t); ms > 0) {
      const std::string seconds = fmt::format("{:.6g}", ms * 1e-3);
      times.samples.push_back({{{"device", t.device}, {"pass", shape_name(t)}}, seconds});
    }
  report::Metric info{
      "info",
      "What was validated",
      {{{{"version", kToolVersion}, {"module", v.module}, {"torch", v.torch_version}, {"gpu", v.gpu}}, "1"}}};
  return {report::exit_status_metric(exit_status), std::move(verdicts), std::move(cases), std::move(times),
          std::move(info)};
}

report::Tone tone_of(Verdict verdict) {
  if (verdict == Verdict::Passed) return report::Tone::Good;
  return verdict == Verdict::Failed ? report::Tone::Error : report::Tone::Unknown;
}

// What comes between the verdict and the details.
std::vector<std::string> lead_of(const Validation& v) {
  std::vector<std::string> lead;
  if (!v.module_message.empty() && !cannot_be_used(v)) lead.push_back(v.module_message);
  if (!v.blocked.empty()) lead.push_back(say("not completed: {}", v.blocked));
  if (!v.baseline_problem.empty()) lead.push_back(v.baseline_problem);
  for (const std::string& note : v.notes) lead.push_back(say("note: {}", note));
  return lead;
}

}  // namespace

report::Document validation_document(const Validation& v, int exit_status) {
  report::Document document{.command = "validate",
                            .verdict_word = word(v.verdict),
                            .verdict = verdict_line(v),
                            .tone = tone_of(v.verdict),
                            .exit_status = exit_status,
                            .lead = lead_of(v),
                            .facts = facts_of(v),
                            .problems = problems_of(v),
                            .suites = suites_of(v),
                            .metrics = metrics_of(v, exit_status),
                            .environment = v.python,
                            .tool_version = kToolVersion};
  document.blocks = blocks_of(v, document.problems.size());
  for (const std::string& why : {v.blocked, v.baseline_problem})
    if (!why.empty())
      document.open.push_back({.check = "validate", .question = say("Was everything run?"), .why = why});
  return document;
}

report::Views validation_views(const Validation& v, int exit_status) {
  return {.text = [&v](const report::TextStyle& style) { return text_report(v, style); },
          .json = [&v] { return json_report(v); },
          .document = [&v, exit_status] { return validation_document(v, exit_status); }};
}

}  // namespace scankit::validate
