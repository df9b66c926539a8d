// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/model/plain_json.h"
#include "doctor/report/audit.h"
#include "doctor/report/escape.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {
using Json = nlohmann::ordered_json;

// GitHub shows no more results of one run.
constexpr std::size_t kMostResults = 5000;

Json text(const std::string& words) { return Json{{"text", plain(words, false)}}; }

// A drift is located in the repository's file that demands something else, so that GitHub shows it at
// that line. A relative URI is relative to the repository.
Json demanded_line(const FileLine& line) {
  constexpr std::string_view kRoot = "file:///";
  const std::string uri = line.file.starts_with('/')
                              ? file_uri(line.file)
                              : file_uri("/" + path_normalize(line.file)).substr(kRoot.size());
  return {{"artifactLocation", {{"uri", uri}}}, {"region", {{"startLine", std::max(line.line, 1u)}}}};
}

// A finding about a package has no file. The interpreter then represents the environment, because viewers
// refuse a result without a physical location.
Json location(const Finding& finding, const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const std::string& environment = python.requested.empty() ? python.executable : python.requested;
  const bool is_file = finding.subject.starts_with('/');
  Json place = Json::object();
  if (finding.demanded_by)
    place["physicalLocation"] = demanded_line(*finding.demanded_by);
  else if (is_file || environment.starts_with('/'))
    place["physicalLocation"] = {
        {"artifactLocation", {{"uri", file_uri(is_file ? finding.subject : environment)}}}};
  Json logical{{"name", plain(finding.subject, false)}, {"kind", is_file ? "resource" : "module"}};
  if (!finding.module.empty()) logical["fullyQualifiedName"] = plain(finding.module, false);
  place["logicalLocations"] = Json::array({std::move(logical)});
  return place;
}

std::string message(const Finding& finding, const Snapshot& snapshot) {
  std::string words = tr(finding.summary);
  if (finding.because_of) words += " Because of " + std::string(info(*finding.because_of).slug) + ".";
  for (const Fix& fix : finding.fixes) words += " Repair: " + fix_or_command(fix, snapshot) + ".";
  return words;
}

// A fingerprint that tells GitHub which finding of an earlier run this is. The directory may differ
// between runs (a CI checkout, a home directory), the file name does not. A counter separates equal
// findings of one run.
std::string fingerprint(const Finding& finding, std::map<std::string, unsigned>& seen) {
  const std::string identity =
      std::string(info(finding.cause).slug) + "\n" + finding.module + "\n" + path_basename(finding.subject);
  return sha256_hex(identity + "\n" + std::to_string(seen[identity]++));
}

// A rule is a cause of the catalogue; its id is the slug.
Json rule(const CauseInfo& cause) {
  const std::string slug(cause.slug);
  return {{"id", slug},
          {"name", slug},
          {"shortDescription", text(std::string(cause.title))},
          {"help", text(std::string(cause.next_step) + ". More: scankit explain " + slug)},
          {"defaultConfiguration", {{"level", severity_word(cause.severity)}}}};
}

// Checks that were not answered are notifications about the run, not results: nothing was found.
Json notifications(const Report& report, std::size_t left_out) {
  Json list = Json::array();
  for (const Outcome& outcome : report.outcomes) {
    if (!is_open(outcome)) continue;
    const bool crashed = outcome.state == CheckState::Crashed;
    const char* level = crashed ? "error" : outcome.could_hide_error ? "warning" : "note";
    list.push_back({{"descriptor", {{"id", outcome.check}}},
                    {"level", level},
                    {"message", text(tr(outcome.question) + " " +
                                     (crashed ? "The check failed: " : "Unknown: ") + tr(outcome.why))}});
  }
  if (left_out > 0)
    list.push_back({{"level", "warning"},
                    {"message", text(std::to_string(left_out) + " further findings are left out")}});
  return list;
}

// Every file of the audit with its answer. Those that would fail for a known cause are results as well.
Json audited(const AuditTable& table) {
  Json list = Json::array();
  for (const AuditLine& line : table.lines)
    list.push_back({{"file", plain(line.path, false)},
                    {"package", plain(line.package, false)},
                    {"answer", line.word},
                    {"cause", line.cause},
                    {"why", plain(line.why, false)}});
  return list;
}

}  // namespace

std::string doctor_sarif(const Report& report, const SinkOptions& options) {
  // Ordered by the catalogue, so that the indices do not depend on the order of the findings.
  std::map<Cause, std::size_t> rule_index;  // in the order of the catalogue
  for (const Finding& finding : report.findings) rule_index.emplace(finding.cause, 0);
  Json rules = Json::array();
  for (auto& [cause, index] : rule_index) {
    index = rules.size();
    rules.push_back(rule(info(cause)));
  }
  Json results = Json::array();
  std::map<std::string, unsigned> seen;
  const std::size_t shown = std::min(report.findings.size(), kMostResults);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = report.findings[i];
    Json result{{"ruleId", info(finding.cause).slug},
                {"ruleIndex", rule_index[finding.cause]},
                {"level", severity_word(finding.severity())},
                {"message", text(message(finding, report.snapshot))},
                {"locations", Json::array({location(finding, report.snapshot)})},
                {"partialFingerprints", {{"scankitFinding/v1", fingerprint(finding, seen)}}}};
    for (const Evidence& evidence : finding.evidence)
      result["properties"]["evidence"].push_back(
          {{"fact", plain(evidence.fact, false)}, {"value", plain(evidence.value, false)}});
    if (finding.because_of) result["properties"]["because_of"] = info(*finding.because_of).slug;
    results.push_back(std::move(result));
  }
  // executionSuccessful is about scankit itself, not about what it found.
  const bool crashed = std::ranges::any_of(
      report.outcomes, [](const Outcome& outcome) { return outcome.state == CheckState::Crashed; });
  Json invocation{{"executionSuccessful", !crashed}, {"exitCode", options.exit_status}};
  if (Json list = notifications(report, report.findings.size() - shown); !list.empty())
    invocation["toolExecutionNotifications"] = std::move(list);
  Json properties{{"verdict", verdict_word(report)}};
  for (const std::string& line : target_lines(report.snapshot))
    properties["target"].push_back(plain(line, false));
  if (const auto table = audit_table(report.snapshot)) {
    properties["extensions"] = audited(*table);
    properties["extensionsSummary"] = plain(table->title, false);
  }
  Json driver{{"name", "scankit"}, {"version", report.snapshot.tool_version}, {"rules", std::move(rules)}};
  const Json sarif{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                   {"version", "2.1.0"},
                   {"runs", Json::array({{{"tool", {{"driver", std::move(driver)}}},
                                          {"invocations", Json::array({std::move(invocation)})},
                                          {"results", std::move(results)},
                                          {"properties", std::move(properties)},
                                          // The specification wants to know how columns are counted, even
                                          // though no result has one.
                                          {"columnKind", "utf16CodeUnits"}}})}};
  return json_document(sarif);
}

}  // namespace scankit
