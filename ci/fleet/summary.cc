// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/summary.h"

#include <nlohmann/json.hpp>

namespace scankit::fleet {
namespace {

using Json = nlohmann::json;

// Enough to tell what is wrong; the file holds all of it.
constexpr std::size_t kMost = 20;

// What is not there, or not of the form, is "".
std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& list(const Json& json, const char* key) {
  static const Json none = Json::array();
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : none;
}

std::string first_reason(const Json& json) {
  for (const Json& reason : list(json, "reasons"))
    if (reason.is_string()) return reason.get<std::string>();
  return "";
}

void take_findings(const Json& json, Summary& summary) {
  for (const Json& finding : list(json, "findings")) {
    if (!finding.is_object() || summary.causes.size() >= kMost) continue;
    summary.causes.push_back({text(finding, "cause"), text(finding, "severity"), text(finding, "subject"),
                              text(finding, "summary")});
  }
  for (const Json& open : list(json, "unknown"))
    if (open.is_object() && open.value("could_hide_error", true) && summary.unknown.size() < kMost)
      summary.unknown.push_back(text(open, "question").empty()
                                    ? text(open, "why")
                                    : text(open, "question") + " " + text(open, "why"));
}

// The largest share of its bound that any result of a device and dtype took: what a GPU that computes a
// little wrong differs in long before a case fails.
void take_errors(const Json& one, const std::string& device, std::map<std::string, double>& worst) {
  for (const Json& tensor : list(one, "tensors")) {
    const auto found = tensor.find("worst");
    if (found == tensor.end() || !found->is_object()) continue;
    const auto ratio = found->find("ratio");
    if (ratio == found->end() || !ratio->is_number()) continue;
    double& most = worst[device + " " + text(tensor, "dtype") + "-error"];
    most = std::max(most, ratio->get<double>());
  }
}

void take_cases(const Json& json, Summary& summary) {
  std::map<std::string, double> worst;
  for (const Json& one : list(json, "cases")) {
    if (!one.is_object()) continue;
    const std::string state = text(one, "state"), device = text(one, "device");
    take_errors(one, device, worst);
    if (state == "passed" || state == "not_run") continue;
    ++summary.failed;
    if (summary.failures.size() >= kMost) continue;
    const std::string why = first_reason(one);
    summary.failures.push_back({device + " " + text(one, "id"), why.empty() ? state : why});
  }
  for (const auto& [name, ratio] : worst) summary.measures.push_back({name, "of the bound", ratio});
  if (const std::string blocked = text(json, "not_completed"); !blocked.empty())
    summary.unknown.push_back(blocked);
  const auto module = json.find("module");
  if (module != json.end() && module->is_object() && !text(*module, "problem").empty()) {
    ++summary.failed;
    summary.failures.push_back({text(*module, "name"), text(*module, "message")});
  }
}

void take_timing(const Json& json, Summary& summary) {
  for (const Json& timing : list(json, "timing")) {
    if (!timing.is_object()) continue;
    const auto ms = timing.find("module_ms"), shape = timing.find("shape");
    if (ms == timing.end() || !ms->is_number() || shape == timing.end() || !shape->is_object()) continue;
    std::string name = text(timing, "device") + " " + text(timing, "pass") + " " + text(timing, "dtype");
    for (const auto& [key, letter] :
         {std::pair("batch", 'B'), std::pair("dim", 'D'), std::pair("length", 'L'), std::pair("states", 'N')})
      if (shape->contains(key)) name += std::string(" ") + letter + (*shape)[key].dump();
    summary.measures.push_back(
        {name + " " + text(timing, "cache"), "ms", ms->get<double>(), !text(timing, "disturbed").empty()});
  }
}

void take(const Json& json, Summary& summary) {
  take_findings(json, summary);
  take_cases(json, summary);
  take_timing(json, summary);
}

}  // namespace

Summary summarised(std::string_view text_of_command) {
  Summary summary;
  const Json json = Json::parse(text_of_command, nullptr, false);
  if (!json.is_object()) return summary;
  summary.verdict = text(json, "verdict");
  take(json, summary);
  // `ci run`: the answers of its parts, each as that command prints it.
  for (const Json& step : list(json, "steps")) {
    if (!step.is_object()) continue;
    for (const char* key : {"result", "report"})
      if (const auto part = step.find(key); part != step.end() && part->is_object()) take(*part, summary);
  }
  return summary;
}

}  // namespace scankit::fleet
