// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/summary.h"

#include <nlohmann/json.hpp>

#include "doctor/base/json_text.h"

namespace scankit::fleet {
namespace {

using ParsedJson = nlohmann::json;

// Enough to tell what is wrong; the file holds all of it.
constexpr std::size_t kMostKept = 20;

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

// The largest share of its bound that any result of a device and dtype took: what a GPU that computes a
// little wrong differs in long before a case fails.
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

void take_timing(const ParsedJson& json, Summary& summary) {
  for (const ParsedJson& timing : list(json, "timing")) {
    if (!timing.is_object()) continue;
    const auto ms = timing.find("module_ms"), shape = timing.find("shape");
    if (ms == timing.end() || !ms->is_number() || shape == timing.end() || !shape->is_object()) continue;
    std::string name =
        json_text(timing, "device") + " " + json_text(timing, "pass") + " " + json_text(timing, "dtype");
    for (const auto& [key, letter] :
         {std::pair("batch", 'B'), std::pair("dim", 'D'), std::pair("length", 'L'), std::pair("states", 'N')})
      if (shape->contains(key)) name += std::string(" ") + letter + (*shape)[key].dump();
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
  const ParsedJson json = ParsedJson::parse(text_of_command, nullptr, false);
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

}  // namespace scankit::fleet
