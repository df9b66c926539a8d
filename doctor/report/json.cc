// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "doctor/base/say.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/examined_files.h"
#include "doctor/report/fixes.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {
using Json = nlohmann::ordered_json;

// `fix` with what a program needs to carry it out. `text` and `command` are for people and depend
// on the machine.
Json fix_json(const Fix& fix, const Snapshot& snapshot) {
  Json json{{"kind", fix_kind(fix)}, {"text", fix_sentence(fix, snapshot)}};
  if (const auto* module = std::get_if<InstallModule>(&fix)) json["module"] = module->module;
  if (const auto* package = std::get_if<InstallModelPackage>(&fix))
    json["distribution"] = package->distribution;
  if (const auto* module = std::get_if<ImportTorchFirst>(&fix)) json["module"] = module->module;
  if (const auto* packages = std::get_if<InstallPackages>(&fix)) {
    json["requirements"] = packages->requirements;
    json["reinstall"] = packages->reinstall;
  }
  if (const auto* rebuild = std::get_if<RebuildPackage>(&fix)) {
    json["distribution"] = rebuild->distribution;
    json["version"] = rebuild->version;
  }
  if (const auto* project = std::get_if<BuildProject>(&fix)) {
    json["folder"] = project->folder;
    json["module"] = project->module;
  }
  if (const auto* keep = std::get_if<KeepOnly>(&fix)) {
    json["requirement"] = keep->requirement;
    json["uninstall"] = keep->others;
  }
  if (const auto* shadow = std::get_if<RemoveShadow>(&fix)) json["path"] = shadow->path;
  if (const auto* variable = std::get_if<SetEnvironment>(&fix)) {
    json["name"] = variable->name;
    json["value"] = variable->value;
  }
  json["command"] = or_null(fix_command(fix, snapshot));
  return json;
}

Json finding_json(const Finding& finding, const Snapshot& snapshot) {
  const CauseInfo& cause = info(finding.cause);
  Json json{{"cause", cause.slug},        {"severity", severity_word(finding.severity())},
            {"subject", finding.subject}, {"module", or_null(finding.module)},
            {"title", cause.title},       {"summary", english(finding.summary)},
            {"evidence", Json::array()},  {"fixes", Json::array()},
            {"because_of", nullptr},      {"next_step", cause.next_step}};
  for (const Evidence& evidence : finding.evidence)
    json["evidence"].push_back({{"fact", evidence.fact}, {"value", evidence.value}});
  for (const Fix& fix : finding.fixes) json["fixes"].push_back(fix_json(fix, snapshot));
  if (finding.demanded_by)
    json["demanded_by"] = {{"file", finding.demanded_by->file}, {"line", finding.demanded_by->line}};
  if (finding.because_of) json["because_of"] = info(*finding.because_of).slug;
  return json;
}

// The findings of a check, as indices into the report's findings. `taken` gives each of two equal
// findings its own index.
Json places_of(const Outcome& outcome, const Report& report, std::vector<bool>& taken) {
  Json places = Json::array();
  for (const Finding& wanted : outcome.findings)
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
      const Finding& finding = report.findings[i];
      if (taken[i] || finding.cause != wanted.cause || finding.subject != wanted.subject ||
          finding.module != wanted.module || finding.summary != wanted.summary)
        continue;
      taken[i] = true;
      places.push_back(i);
      break;
    }
  return places;
}

std::string_view state_word(CheckState state) {
  switch (state) {
    case CheckState::Passed:
      return "passed";
    case CheckState::Found:
      return "found";
    case CheckState::NotApplicable:
      return "not_applicable";
    case CheckState::Unknown:
      return "unknown";
    case CheckState::Crashed:
      break;
  }
  return "crashed";
}

// Every question that was asked, so that a program can tell "passed" from "never asked".
Json checks_json(const Report& report) {
  Json checks = Json::array();
  std::vector<bool> taken(report.findings.size(), false);
  for (const Outcome& outcome : report.outcomes)
    checks.push_back({{"check", outcome.check},
                      {"question", english(outcome.question)},
                      {"state", state_word(outcome.state)},
                      {"findings", places_of(outcome, report, taken)}});
  return checks;
}

Json steps_json(const Report& report) {
  Json steps = Json::array();
  for (const Step& step : report.steps)
    steps.push_back({{"name", step.name}, {"status", step.status}, {"seconds", step.seconds}});
  return steps;
}

// Adds "unknown" and "not_checked". An outcome may be in both, and several times in the second.
void add_outcomes(const Report& report, Json& json) {
  // Collected in local arrays and added at the end: ordered_json stores its members in a vector, so a new
  // key would invalidate a reference to an older one.
  Json unknown = Json::array(), skipped = Json::array();
  for (const Outcome& outcome : report.outcomes) {
    Json entry{
        {"check", outcome.check}, {"question", english(outcome.question)}, {"why", english(outcome.why)}};
    if (outcome.state == CheckState::NotApplicable) {
      skipped.push_back(entry);
      skipped.back()["asked"] = !outcome.not_asked;
      skipped.back()["applies"] = outcome.left_out;
    }
    for (const Message& part : outcome.not_checked) {
      Json partial = entry;
      partial["why"] = english(part);
      partial["applies"] = true;
      skipped.push_back(std::move(partial));
    }
    if (!is_open(outcome)) continue;
    entry["crashed"] = outcome.state == CheckState::Crashed;
    entry["could_hide_error"] = outcome.could_hide_error;
    unknown.push_back(std::move(entry));
  }
  json["unknown"] = std::move(unknown);
  json["not_checked"] = std::move(skipped);
}

// What the answer is about if that is not this machine: null or empty fields mean that it is.
Json target(const Snapshot& snapshot) {
  const bool log_alone = snapshot.log.present() && snapshot.log.value.alone;
  std::vector<std::string> described;
  for (const Message& part : snapshot.described) described.push_back(part.english());
  return {{"snapshot", or_null(snapshot.read_from)},
          {"root", or_null(snapshot.target_root)},
          {"files", snapshot.named_files},
          {"log", log_alone ? Json(snapshot.log.value.source) : Json(nullptr)},
          {"described", described}};
}

Json compared_with(const Report& report) {
  Json files{{"spec", nullptr}, {"lock", nullptr}};
  for (const auto& [kind, file] : report.compared_with) files[kind] = file;
  return files;
}

}  // namespace

nlohmann::ordered_json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
nlohmann::ordered_json or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

// The order of the keys is part of the format: same report, same bytes.
std::string doctor_json(const Report& report) {
  const bool drift = report.asked == Asked::Drift;
  const bool gate = report.asked == Asked::Gate;
  const char* schema = gate ? kGateSchema : drift ? kDriftSchema : kDoctorSchema;
  Json json{{"$schema", schema},
            {"schema", schema},
            {"tool_version", report.snapshot.tool_version},
            {"python", or_null(report.snapshot.python.value.requested)},
            {"target", target(report.snapshot)},
            {"verdict", verdict_word(report)},
            {"root", nullptr}};
  if (!drift && !gate && report.snapshot.command) json["command"] = command_json(*report.snapshot.command);
  if (drift) json["compared_with"] = compared_with(report);
  if (gate) {
    json["policy"] = report.compared_with.empty() ? Json(nullptr) : Json(report.compared_with[0].second);
    json["steps"] = steps_json(report);
  }
  if (const Finding* first = root(report); first != nullptr)
    json["root"] = finding_json(*first, report.snapshot);
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings)
    json["findings"].push_back(finding_json(finding, report.snapshot));
  json["checks"] = checks_json(report);
  add_outcomes(report, json);
  if (report.snapshot.audit.state != ProbeState::NotRun && !audit_of_linked(report.snapshot))
    json["audit"] = audit_json(report.snapshot);
  if (!drift) json["built_for"] = built_for_json(report.snapshot);
  const auto repair = repair_command(report);
  json["repair"] = repair ? Json(*repair) : Json(nullptr);
  return json_document(json);
}

namespace {
using ParsedJson = nlohmann::json;

// The opposite of fix_json(). A kind that this version does not know becomes advice, which
// nothing executes.
Fix fix_of(const ParsedJson& json) {
  const std::string kind = json_text(json, "kind");
  if (kind == "install_module") return InstallModule{json_text(json, "module")};
  if (kind == "install_package") return InstallModelPackage{json_text(json, "distribution")};
  if (kind == "import_torch_first") return ImportTorchFirst{json_text(json, "module")};
  if (kind == "install_packages")
    return InstallPackages{json.at("requirements").get<std::vector<std::string>>(),
                           json.value("reinstall", false)};
  if (kind == "rebuild_package")
    return RebuildPackage{json_text(json, "distribution"), json_text(json, "version"), "", {}};
  if (kind == "build_project") return BuildProject{json_text(json, "folder"), json_text(json, "module")};
  if (kind == "keep_only")
    return KeepOnly{json_text(json, "requirement"), json.at("uninstall").get<std::vector<std::string>>()};
  if (kind == "remove_shadow") return RemoveShadow{json_text(json, "path"), ""};
  if (kind == "set_environment") return SetEnvironment{json_text(json, "name"), json_text(json, "value")};
  return Advice{json_text(json, "text")};
}

std::optional<Severity> severity_of(const std::string& word) {
  if (word == "error") return Severity::Error;
  if (word == "warning") return Severity::Warning;
  if (word == "note") return Severity::Note;
  return std::nullopt;
}

Circumstance reported_as(Severity severity) {
  if (severity == Severity::Error) return Circumstance::ReportedAsError;
  return severity == Severity::Warning ? Circumstance::ReportedAsWarning : Circumstance::ReportedAsNote;
}

// The opposite of finding_json(). The circumstances are not in the JSON: what they made of the cause is.
Result<Finding> finding_of(const ParsedJson& json) {
  const std::string slug = json_text(json, "cause");
  const auto cause = cause_from_slug(slug);
  if (!cause) return Error{Errc::Unsupported, message("unknown cause \"{}\"", slug), ""};
  const auto severity = severity_of(json_text(json, "severity"));
  if (!severity) return Error{Errc::Malformed, message("a finding of {} has no severity", slug), ""};
  Finding finding{.cause = *cause,
                  .subject = json_text(json, "subject"),
                  .module = json_text(json, "module"),
                  .summary = json_text(json, "summary")};
  if (*severity != info(*cause).severity) finding.circumstances = {reported_as(*severity)};
  finding.because_of = cause_from_slug(json_text(json, "because_of"));
  for (const ParsedJson& evidence : json.at("evidence"))
    finding.evidence.push_back({json_text(evidence, "fact"), json_text(evidence, "value")});
  for (const ParsedJson& fix : json.at("fixes")) finding.fixes.push_back(fix_of(fix));
  if (const auto line = json.find("demanded_by"); line != json.end())
    finding.demanded_by = FileLine{json_text(*line, "file"), whole_number<unsigned>(line->at("line"))};
  return finding;
}

std::optional<CheckState> state_of(const std::string& word) {
  for (const auto& [name, state] :
       {std::pair{"passed", CheckState::Passed}, std::pair{"found", CheckState::Found},
        std::pair{"not_applicable", CheckState::NotApplicable}, std::pair{"unknown", CheckState::Unknown},
        std::pair{"crashed", CheckState::Crashed}})
    if (word == name) return state;
  return std::nullopt;
}

// The opposite of checks_json() and add_outcomes() for one check.
Result<Outcome> outcome_of(const ParsedJson& check, const ParsedJson& all) {
  Outcome outcome{.check = json_text(check, "check"), .question = json_text(check, "question")};
  const auto state = state_of(json_text(check, "state"));
  if (!state) return Error{Errc::Malformed, message("the check {} has no state", outcome.check), ""};
  outcome.state = *state;
  for (const ParsedJson& place : check.at("findings")) {
    SCANKIT_TRY(Finding finding, finding_of(all.at("findings").at(whole_number<std::size_t>(place))));
    outcome.findings.push_back(std::move(finding));
  }
  for (const ParsedJson& open : all.at("unknown"))
    if (json_text(open, "check") == outcome.check) {
      outcome.why = json_text(open, "why");
      outcome.could_hide_error = open.at("could_hide_error").get<bool>();
    }
  for (const ParsedJson& skipped : all.at("not_checked")) {
    if (json_text(skipped, "check") != outcome.check) continue;
    if (outcome.state != CheckState::NotApplicable) {
      outcome.not_checked.push_back(json_text(skipped, "why"));
      continue;
    }
    outcome.why = json_text(skipped, "why");
    outcome.left_out = skipped.value("applies", false);
    outcome.not_asked = !skipped.value("asked", true);
  }
  return outcome;
}

}  // namespace

Result<std::vector<Outcome>> outcomes_from_json(std::string_view text, std::string_view schema) {
  try {
    const ParsedJson json = parse_json<ParsedJson>(text);
    if (json_text(json, "schema") != schema)
      return Error{Errc::Unsupported,
                   message("its schema is \"{}\", not \"{}\"", json_text(json, "schema"), schema), ""};
    std::vector<Outcome> outcomes;
    std::size_t told = 0;
    // A finding that belongs to no check would be lost, so the numbers must agree.
    for (const ParsedJson& check : json.at("checks")) {
      SCANKIT_TRY(Outcome outcome, outcome_of(check, json));
      told += outcome.findings.size();
      outcomes.push_back(std::move(outcome));
    }
    if (told != json.at("findings").size())
      return Error{Errc::Malformed, message("it contains findings of no check"), ""};
    return outcomes;
  } catch (const ParsedJson::exception& problem) {
    return Error{Errc::Malformed, message("it is not a complete answer: {}", problem.what()), ""};
  }
}

}  // namespace scankit::report
