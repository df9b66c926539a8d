// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "ci/gate/gate.h"
#include "doctor/base/say.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/json.h"

// Turns the JSON of `scankit validate` into outcomes, so that the gate's report has one form for all of
// its steps. What validate says itself stays English.
namespace scankit::gate {
namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostEvidence = 10;
constexpr const char* kImportCheck = "validate-import";

// The cases of one device or way. `evidence` has the first failures only; the counts are complete.
struct Device {
  std::size_t cases = 0, failed = 0, not_run = 0;
  std::vector<Evidence> evidence;
};

std::string first_reason(const Json& result) {
  const auto reasons = result.find("reasons");
  if (reasons == result.end() || !reasons->is_array() || reasons->empty()) return json_text(result, "state");
  return reasons->front().is_string() ? reasons->front().get<std::string>() : "";
}

// Everything but "passed" and "not_run" counts as failed, also a state that this version does not know.
std::map<std::string, Device> devices_of(const Json& json) {
  std::map<std::string, Device> devices;
  std::size_t at = 0;
  for (const Json& result : json.at("cases")) {
    Device& device = devices[json_text(result, "device")];
    const std::string state = json_text(result, "state");
    ++device.cases;
    if (state == "not_run") ++device.not_run;
    const bool failed = state != "not_run" && state != "passed";
    if (failed && ++device.failed <= kMostEvidence)
      device.evidence.push_back({"/cases/" + std::to_string(at) + "/reasons/0",
                                 json_text(result, "id") + ": " + first_reason(result)});
    ++at;
  }
  return devices;
}

Finding failed_finding(const Json& json, Message summary, std::vector<Evidence> evidence) {
  const Json& module = json.at("module");
  const std::string file = json_text(module, "file"), name = json_text(module, "name");
  return {.cause = Cause::ValidationFailed,
          .subject = file.empty() ? name : file,
          .module = name,
          .summary = std::move(summary),
          .evidence = std::move(evidence),
          .fixes = {Advice{table_text(info(Cause::ValidationFailed).next_step)}}};
}

Outcome of_device(const Json& json, const std::string& name, const Device& device) {
  Outcome outcome{.check = "validate-numbers-" + name,
                  .question = message("Are the results of {} on {} correct, forward and every gradient?",
                                      json_text(json.at("module"), "name"), name)};
  if (device.failed > 0) {
    outcome.state = CheckState::Found;
    outcome.findings.push_back(failed_finding(
        json, message("{} of {} cases failed on {}", device.failed, device.cases, name), device.evidence));
  } else if (device.not_run > 0) {
    outcome.state = CheckState::Unknown;
    outcome.could_hide_error = true;
    outcome.why = message("{} of {} cases were not run", device.not_run, device.cases);
  }
  return outcome;
}

// The cause behind a failed import's message, found by the rules that read logs. Nothing where they only
// guess. Those rules expect a traceback, so that one is put around the message.
std::optional<Cause> cause_of_import(const std::string& message) {
  constexpr const char* kHead =
      "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n";
  const Log log = logs::explain_text(std::string(kHead).append(message).append("\n"));
  if (log.hits.empty() || log.hits.front().role != "root" || log.hits.front().sure == "possible")
    return std::nullopt;
  return cause_from_slug(log.hits.front().cause);
}

// A failed import says nothing about numbers: it gets the cause of the import, not "wrong results".
Finding import_finding(const Json& json, const std::string& problem) {
  Finding finding =
      failed_finding(json, message("{} does not import: {}", json_text(json.at("module"), "name"), problem),
                     {{"/module/message", problem}});
  const auto cause = cause_of_import(problem);
  if (cause) finding.cause = *cause;
  finding.fixes = {Advice{cause ? table_text(info(*cause).next_step)
                                : message("scankit doctor shows the cause of a failed import")}};
  return finding;
}

Outcome of_module(const Json& json) {
  Outcome outcome{
      .check = "validate-module",
      .question = message("Can {} be imported and called?", json_text(json.at("module"), "name"))};
  const std::string problem = json_text(json.at("module"), "problem"),
                    open = json_text(json, "not_completed");
  if (problem == "import_failed" || problem == "lacks_functions") {
    outcome.state = CheckState::Found;
    const std::string message = json_text(json.at("module"), "message");
    const bool import = problem == "import_failed";
    if (import) outcome.check = kImportCheck;
    outcome.findings.push_back(import ? import_finding(json, message)
                                      : failed_finding(json, message, {{"/module/message", message}}));
  } else if (!open.empty()) {
    outcome.state = CheckState::Unknown;
    outcome.could_hide_error = true;
    outcome.why = open;
  }
  return outcome;
}

// One finding for all slower passes, with one piece of evidence for each.
Outcome of_speed(const Json& json, const Json& baseline) {
  Outcome outcome{.check = "validate-speed",
                  .question = message("Is every pass as fast as in {}?", json_text(baseline, "file"))};
  std::size_t at = 0;
  Finding slower = failed_finding(json, "", {});
  slower.cause = Cause::SlowerThanBaseline;
  slower.fixes = {Advice{table_text(info(Cause::SlowerThanBaseline).next_step)}};
  for (const Json& timing : json.at("timing")) {
    const std::string place = "/timing/" + std::to_string(at++) + "/baseline/ratio";
    if (timing.contains("baseline") && timing["baseline"].value("regressed", false))
      slower.evidence.push_back({place, json_text(timing, "pass") + " " + json_text(timing, "dtype") + " " +
                                            dump_json(timing["shape"]) + " " +
                                            dump_json(timing["baseline"]["ratio"])});
  }
  if (const std::string problem = json_text(baseline, "problem"); !problem.empty()) {
    outcome.state = CheckState::Unknown;
    outcome.could_hide_error = true;
    outcome.why = problem;
  } else if (!slower.evidence.empty()) {
    const std::size_t n = slower.evidence.size();
    slower.summary = message_n(n, "{} pass is slower than in {}", "{} passes are slower than in {}", n,
                               json_text(baseline, "file"));
    outcome.state = CheckState::Found;
    outcome.findings.push_back(std::move(slower));
  }
  return outcome;
}

}  // namespace

Result<std::vector<Outcome>> validate_outcomes(std::string_view text) {
  try {
    const Json json = parse_json<Json>(text);
    std::vector<Outcome> outcomes{of_module(json)};
    for (const auto& [name, device] : devices_of(json)) outcomes.push_back(of_device(json, name, device));
    const Json& baseline = json.at("baseline");
    if (baseline.is_object()) outcomes.push_back(of_speed(json, baseline));
    // The verdict decides. If none of the outcomes explains it, the reason is unknown, and that must not
    // become a pass.
    const std::string verdict = json_text(json, "verdict");
    const auto any = [&](CheckState state) {
      return std::ranges::any_of(outcomes, [&](const Outcome& each) { return each.state == state; });
    };
    const Message no_reason = message("validate ended as \"{}\" without a reason", verdict);
    if (verdict == "failed" && !any(CheckState::Found)) {
      outcomes[0].state = CheckState::Found;
      outcomes[0].findings.push_back(failed_finding(json, no_reason, {{"/verdict", verdict}}));
    } else if (verdict != "passed" && !any(CheckState::Found) && !any(CheckState::Unknown)) {
      outcomes[0].state = CheckState::Unknown;
      outcomes[0].could_hide_error = true;
      outcomes[0].why = no_reason;
    }
    return outcomes;
  } catch (const Json::exception& problem) {
    return Error{Errc::Malformed, message("it is not a complete answer: {}", problem.what()), ""};
  }
}

void leave_import_to_doctor(const std::vector<Outcome>& doctor, std::vector<Outcome>& validate) {
  const auto is_named = [&](const std::string& module) {
    return std::ranges::any_of(doctor, [&](const Outcome& outcome) {
      return std::ranges::any_of(outcome.findings, [&](const Finding& finding) {
        return finding.module == module && finding.severity() == Severity::Error;
      });
    });
  };
  for (Outcome& outcome : validate) {
    if (outcome.check != kImportCheck || outcome.findings.empty()) continue;
    const std::string module = outcome.findings.front().module;
    if (!is_named(module)) continue;
    outcome.state = CheckState::NotApplicable;
    outcome.left_out = true;
    outcome.why = message("{} does not import", module);
    outcome.findings.clear();
  }
}

}  // namespace scankit::gate
