// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/report.h"

#include <nlohmann/json.hpp>

#include "ci/fleet/commands.h"
#include "ci/fleet/roster.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/model/json.h"
#include "doctor/report/text.h"

// Reads the JSON of commands in brief, has the sentences that several output formats share, and
// runs `fleet report`.
namespace scankit::fleet {
namespace {

using ParsedJson = nlohmann::json;

// Enough to tell what is wrong; the file holds all of it.
constexpr std::size_t kMostKept = 20;

// The array of that name, or an empty one: a command of another version may lack it.
const ParsedJson& list(const ParsedJson& json, const char* key) {
  static const ParsedJson none = ParsedJson::array();
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : none;
}

std::string first_reason(const ParsedJson& json) {
  for (const ParsedJson& reason : list(json, "reasons"))
    if (reason.is_string()) return reason.get<std::string>();
  return "";
}

void take_findings(const ParsedJson& json, Summary& summary) {
  for (const ParsedJson& finding : list(json, "findings")) {
    if (!finding.is_object() || summary.causes.size() >= kMostKept) continue;
    summary.causes.push_back({json_text(finding, "cause"), json_text(finding, "severity"),
                              json_text(finding, "subject"), json_text(finding, "summary")});
  }
  for (const ParsedJson& open : list(json, "unknown"))
    if (open.is_object() && open.value("could_hide_error", true) && summary.unknown.size() < kMostKept)
      summary.unknown.push_back(json_text(open, "question").empty()
                                    ? json_text(open, "why")
                                    : json_text(open, "question") + " " + json_text(open, "why"));
}

// The largest share of its bound that any result of a device and dtype used. A GPU that computes slightly
// wrong shows here long before a case fails.
void take_errors(const ParsedJson& one, const std::string& device, std::map<std::string, double>& worst) {
  for (const ParsedJson& tensor : list(one, "tensors")) {
    const auto found = tensor.find("worst");
    if (found == tensor.end() || !found->is_object()) continue;
    const auto ratio = found->find("ratio");
    if (ratio == found->end() || !ratio->is_number()) continue;
    double& most = worst[device + " " + json_text(tensor, "dtype") + "-error"];
    most = std::max(most, ratio->get<double>());
  }
}

// The cases of validate. Without that command's JSON nothing is found and nothing is added.
void take_cases(const ParsedJson& json, Summary& summary) {
  std::map<std::string, double> worst;
  for (const ParsedJson& one : list(json, "cases")) {
    if (!one.is_object()) continue;
    const std::string state = json_text(one, "state"), device = json_text(one, "device");
    take_errors(one, device, worst);
    if (state == "passed" || state == "not_run") continue;
    ++summary.failed;
    if (summary.failures.size() >= kMostKept) continue;
    const std::string why = first_reason(one);
    summary.failures.push_back({device + " " + json_text(one, "id"), why.empty() ? state : why});
  }
  for (const auto& [name, ratio] : worst) summary.measures.push_back({name, "of the bound", ratio});
  if (const std::string blocked = json_text(json, "not_completed"); !blocked.empty())
    summary.unknown.push_back(blocked);
  const auto module = json.find("module");
  if (module != json.end() && module->is_object() && !json_text(*module, "problem").empty()) {
    ++summary.failed;
    summary.failures.push_back({json_text(*module, "name"), json_text(*module, "message")});
  }
}

// Each timed pass becomes a measure, with its shape in the name: only equal shapes are compared.
void take_timing(const ParsedJson& json, Summary& summary) {
  for (const ParsedJson& timing : list(json, "timing")) {
    if (!timing.is_object()) continue;
    const auto ms = timing.find("module_ms"), shape = timing.find("shape");
    if (ms == timing.end() || !ms->is_number() || shape == timing.end() || !shape->is_object()) continue;
    std::string name =
        json_text(timing, "device") + " " + json_text(timing, "pass") + " " + json_text(timing, "dtype");
    for (const auto& [key, letter] :
         {std::pair("batch", 'B'), std::pair("dim", 'D'), std::pair("length", 'L'), std::pair("states", 'N')})
      if (shape->contains(key)) name += std::string(" ") + letter + dump_json((*shape)[key]);
    summary.measures.push_back({name + " " + json_text(timing, "cache"), "ms", ms->get<double>(),
                                !json_text(timing, "disturbed").empty()});
  }
}

void take(const ParsedJson& json, Summary& summary) {
  take_findings(json, summary);
  take_cases(json, summary);
  take_timing(json, summary);
}

}  // namespace

Summary summarised(std::string_view text_of_command) {
  Summary summary;
  const ParsedJson json = parse_json_or_discard<ParsedJson>(text_of_command);
  if (!json.is_object()) return summary;
  summary.verdict = json_text(json, "verdict");
  take(json, summary);
  // `ci run`: the answers of its parts, each as that command prints it.
  for (const ParsedJson& step : list(json, "steps")) {
    if (!step.is_object()) continue;
    for (const char* key : {"result", "report"})
      if (const auto part = step.find(key); part != step.end() && part->is_object()) take(*part, summary);
  }
  return summary;
}

std::string_view verdict_word(const FleetReport& report) {
  if (report.count(Verdict::Failed) > 0) return "broken";
  return report.count(Verdict::Unknown) > 0 || !report.problems.empty() ? "unknown" : "healthy";
}

std::string verdict_line(const FleetReport& report) {
  const std::size_t all = report.nodes.size(), failed = report.count(Verdict::Failed),
                    unknown = report.count(Verdict::Unknown), warnings = report.warnings();
  if (all == 0) return say("no node has a result");
  std::vector<std::string> parts;
  if (failed > 0) parts.push_back(say_n(failed, "{} node failed", "{} nodes failed", failed));
  if (unknown > 0) parts.push_back(say_n(unknown, "{} node is unknown", "{} nodes are unknown", unknown));
  const std::size_t passed = all - failed - unknown;
  parts.push_back(parts.empty() ? say_n(all, "the only node passed", "all {} nodes passed", all)
                                : say("{} of {} passed", passed, all));
  if (passed == all && !report.problems.empty())
    parts.push_back(say("but it is not known whether these are all"));
  const std::string with = warnings > 0 ? say_n(warnings, "{} warning", "{} warnings", warnings) : "";
  return clauses({said_list(parts), with});
}

std::string node_names(const std::vector<std::string>& nodes, std::size_t most) {
  std::string names;
  for (std::size_t i = 0; i < nodes.size() && i < most; ++i) names += (i == 0 ? "" : ", ") + nodes[i];
  return nodes.size() <= most ? names : say("{}, and {} others", names, nodes.size() - most);
}

std::string difference_line(const Difference& difference) {
  std::vector<std::string> apart;
  for (const auto& [value, nodes] : difference.others)
    apart.push_back(say("{} on {}", value, node_names(nodes)));
  const std::string others = clauses(apart);
  const std::string line =
      difference.agreeing == 0 ? others : say("{}; most have {}", others, difference.common);
  // The packages of a record are what a person looks for; other facts are only counted.
  std::vector<std::string> packages;
  for (const std::string& fact : difference.with_it)
    if (const auto at = fact.rfind(kPackageFact); at != std::string::npos)
      packages.push_back(fact.substr(at + kPackageFact.size()));
  if (!packages.empty())
    return say_n(packages.size(), "{} (package: {})", "{} (packages: {})", line, node_names(packages));
  const std::size_t n = difference.with_it.size();
  if (n == 0) return line;
  return say_n(n, "{} (and {} fact that follows from it)", "{} (and {} facts that follow from it)", line, n);
}

std::string outlier_line(const Outlier& o) {
  const double times = o.median > 0 ? o.value / o.median : 0;
  if (o.disturbed)
    return say(
        "{}: {:.4g} {} while the median is {:.4g}: {:.2f} times as much, measured while it had other "
        "work",
        o.measure, o.value, o.unit, o.median, times);
  return say("{}: {:.4g} {} while the median is {:.4g}: {:.2f} times as much", o.measure, o.value, o.unit,
             o.median, times);
}

std::string command_line(const std::vector<std::string>& command) {
  std::string words = "scankit";
  for (const std::string& word : command) words += " " + shell_quoted(word);
  return words;
}

report::Views fleet_views(const FleetReport& report, int exit_status) {
  return {.text = [&report](const report::TextStyle& style) { return text_report(report, style); },
          .json = [&report, exit_status] { return json_report(report, exit_status); },
          .document = [&report, exit_status] { return fleet_document(report, exit_status); }};
}

namespace {

// --expect: a list of hosts, or "@FILE" with names, as `kubectl get nodes -o name`
// writes them ("node/NAME").
Result<std::vector<std::string>> expected_nodes(const std::string& wish) {
  constexpr std::size_t kListLimit = 1u << 20;
  std::string text = wish;
  if (wish.starts_with('@')) {
    SCANKIT_TRY(text, read_whole_file(wish.substr(1), kListLimit, Accept::FilesAndPipes));
  }
  SCANKIT_TRY(std::vector<std::string> names, expanded_hosts(text));
  for (std::string& name : names)
    if (name.starts_with("node/")) name.erase(0, 5);
  return names;
}

}  // namespace

Result<FleetReport> report_of(const std::string& folder, const std::vector<std::string>& expected) {
  SCANKIT_TRY(auto collected, collect(folder));
  collected.expected = expected;
  return merged(collected);
}

int tell(const FleetReport& report, const cli::ShowOptions& options) {
  const int status = exit_status_of(report, options.fail_on);
  const int shown = cli::show(fleet_views(report, status), options);
  return shown != kExitClean ? shown : status;
}

int run_report(const ReportOptions& options) {
  const auto expected = expected_nodes(options.expect);
  if (!expected) {
    cli::report_error(expected.error());
    return kExitUsage;
  }
  auto report = report_of(options.folder, *expected);
  if (!report) {
    cli::report_error(report.error());
    return kExitUsage;
  }
  return tell(*report, options.show);
}

}  // namespace scankit::fleet
