// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/read_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "doctor/base/say.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Fix fix_of(const Json& json) {
  const std::string kind = text_of(json, "kind");
  if (kind == "install_module") return InstallModule{text_of(json, "module")};
  if (kind == "install_package") return InstallModelPackage{text_of(json, "distribution")};
  if (kind == "import_torch_first") return ImportTorchFirst{text_of(json, "module")};
  if (kind == "install_packages")
    return InstallPackages{json.at("requirements").get<std::vector<std::string>>(),
                           json.value("reinstall", false)};
  if (kind == "rebuild_package")
    return RebuildPackage{text_of(json, "distribution"), text_of(json, "version"), "", {}};
  if (kind == "remove_shadow") return RemoveShadow{text_of(json, "path"), ""};
  if (kind == "set_environment") return SetEnvironment{text_of(json, "name"), text_of(json, "value")};
  return Advice{text_of(json, "text")};
}

std::optional<Severity> severity_of(const std::string& word) {
  if (word == "error") return Severity::Error;
  if (word == "warning") return Severity::Warning;
  if (word == "note") return Severity::Note;
  return std::nullopt;
}

Result<Finding> finding_of(const Json& json) {
  const std::string slug = text_of(json, "cause");
  const auto cause = cause_from_slug(slug);
  if (!cause) return Error{Errc::Unsupported, say("no cause is called \"{}\" here", slug), ""};
  const auto severity = severity_of(text_of(json, "severity"));
  if (!severity) return Error{Errc::Malformed, say("a finding of {} has no severity", slug), ""};
  Finding finding{.cause = *cause,
                  .subject = text_of(json, "subject"),
                  .module = text_of(json, "module"),
                  .summary = text_of(json, "summary")};
  if (*severity != info(*cause).severity) finding.severity_override = severity;
  finding.because_of = cause_from_slug(text_of(json, "because_of"));
  for (const Json& evidence : json.at("evidence"))
    finding.evidence.push_back({text_of(evidence, "fact"), text_of(evidence, "value")});
  for (const Json& fix : json.at("fixes")) finding.fixes.push_back(fix_of(fix));
  if (const auto line = json.find("demanded_by"); line != json.end())
    finding.demanded_by = FileLine{text_of(*line, "file"), line->at("line").get<unsigned>()};
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

Result<Outcome> outcome_of(const Json& check, const Json& all) {
  Outcome outcome{.check = text_of(check, "check"), .question = text_of(check, "question")};
  const auto state = state_of(text_of(check, "state"));
  if (!state) return Error{Errc::Malformed, say("the check {} has no state", outcome.check), ""};
  outcome.state = *state;
  for (const Json& place : check.at("findings")) {
    SCANKIT_TRY(Finding finding, finding_of(all.at("findings").at(place.get<std::size_t>())));
    outcome.findings.push_back(std::move(finding));
  }
  for (const Json& open : all.at("unknown"))
    if (text_of(open, "check") == outcome.check) {
      outcome.why = text_of(open, "why");
      outcome.could_hide_error = open.at("could_hide_error").get<bool>();
    }
  for (const Json& skipped : all.at("not_checked")) {
    if (text_of(skipped, "check") != outcome.check) continue;
    if (outcome.state != CheckState::NotApplicable) {
      outcome.not_checked.push_back(text_of(skipped, "why"));
      continue;
    }
    outcome.why = text_of(skipped, "why");
    outcome.left_out = skipped.value("applies", false);
    outcome.not_asked = !skipped.value("asked", true);
  }
  return outcome;
}

}  // namespace

Result<std::vector<Outcome>> outcomes_from_json(std::string_view text, std::string_view schema) {
  try {
    const Json json = Json::parse(text);
    if (text_of(json, "schema") != schema)
      return Error{Errc::Unsupported,
                   say("its schema is \"{}\", not \"{}\"", text_of(json, "schema"), schema), ""};
    std::vector<Outcome> outcomes;
    std::size_t told = 0;
    for (const Json& check : json.at("checks")) {
      SCANKIT_TRY(Outcome outcome, outcome_of(check, json));
      told += outcome.findings.size();
      outcomes.push_back(std::move(outcome));
    }
    if (told != json.at("findings").size())
      return Error{Errc::Malformed, say("it holds findings that no check made"), ""};
    return outcomes;
  } catch (const Json::exception& problem) {
    return Error{Errc::Malformed, say("it is no whole answer: {}", problem.what()), ""};
  }
}

}  // namespace scankit
