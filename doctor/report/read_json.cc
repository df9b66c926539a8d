// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/read_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "doctor/base/json_text.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {
using ParsedJson = nlohmann::json;

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

Result<Finding> finding_of(const ParsedJson& json) {
  const std::string slug = json_text(json, "cause");
  const auto cause = cause_from_slug(slug);
  if (!cause) return Error{Errc::Unsupported, say("no cause is called \"{}\" here", slug), ""};
  const auto severity = severity_of(json_text(json, "severity"));
  if (!severity) return Error{Errc::Malformed, say("a finding of {} has no severity", slug), ""};
  Finding finding{.cause = *cause,
                  .subject = json_text(json, "subject"),
                  .module = json_text(json, "module"),
                  .summary = json_text(json, "summary")};
  if (*severity != info(*cause).severity) finding.severity_override = severity;
  finding.because_of = cause_from_slug(json_text(json, "because_of"));
  for (const ParsedJson& evidence : json.at("evidence"))
    finding.evidence.push_back({json_text(evidence, "fact"), json_text(evidence, "value")});
  for (const ParsedJson& fix : json.at("fixes")) finding.fixes.push_back(fix_of(fix));
  if (const auto line = json.find("demanded_by"); line != json.end())
    finding.demanded_by = FileLine{json_text(*line, "file"), line->at("line").get<unsigned>()};
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

Result<Outcome> outcome_of(const ParsedJson& check, const ParsedJson& all) {
  Outcome outcome{.check = json_text(check, "check"), .question = json_text(check, "question")};
  const auto state = state_of(json_text(check, "state"));
  if (!state) return Error{Errc::Malformed, say("the check {} has no state", outcome.check), ""};
  outcome.state = *state;
  for (const ParsedJson& place : check.at("findings")) {
    SCANKIT_TRY(Finding finding, finding_of(all.at("findings").at(place.get<std::size_t>())));
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
    const ParsedJson json = ParsedJson::parse(text);
    if (json_text(json, "schema") != schema)
      return Error{Errc::Unsupported,
                   say("its schema is \"{}\", not \"{}\"", json_text(json, "schema"), schema), ""};
    std::vector<Outcome> outcomes;
    std::size_t told = 0;
    for (const ParsedJson& check : json.at("checks")) {
      SCANKIT_TRY(Outcome outcome, outcome_of(check, json));
      told += outcome.findings.size();
      outcomes.push_back(std::move(outcome));
    }
    if (told != json.at("findings").size())
      return Error{Errc::Malformed, say("it holds findings that no check made"), ""};
    return outcomes;
  } catch (const ParsedJson::exception& problem) {
    return Error{Errc::Malformed, say("it is no whole answer: {}", problem.what()), ""};
  }
}

}  // namespace scankit
