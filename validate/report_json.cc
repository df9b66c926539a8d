// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "validate/report.h"

namespace scankit::validate {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json tensor_json(const TensorResult& t) {
  return {{"name", t.name},
          {"dtype", t.dtype},
          {"data", t.data},
          {"error", number(t.error)},
          {"explained", number(t.explained)},
          {"bound", number(t.bound)},
          {"worst",
           {{"index", t.worst.index},
            {"value", number(t.worst.value)},
            {"expected", number(t.worst.expected)},
            {"bound", number(t.worst.bound)},
            {"ratio", number(t.worst.ratio)}}}};
}

Json case_json(const CaseResult& c) {
  static constexpr const char* kStates[] = {"passed", "failed", "crashed", "hung", "not_run"};
  Json json{{"id", c.id},
            {"device", c.device},
            {"state", kStates[static_cast<int>(c.state)]},
            {"reasons", c.reasons},
            {"error_kind", c.error_kind.empty() ? Json() : Json(c.error_kind)},
            {"modified", c.modified},
            {"seconds", number(c.seconds)}};
  json["nondeterministic"] = Json::object();
  for (const auto& [name, difference] : c.nondeterministic)
    json["nondeterministic"][name] = number(difference);
  json["tensors"] = Json::array();
  for (const TensorResult& tensor : c.tensors) json["tensors"].push_back(tensor_json(tensor));
  return json;
}

Json timing_json(const Timing& t) {
  return {{"device", t.device},
          {"pass", t.pass},
          {"dtype", t.dtype},
          {"shape", {{"batch", t.batch}, {"dim", t.dim}, {"length", t.length}, {"states", t.states}}},
          {"rounds", t.rounds},
          {"module_ms", number(t.module_ms)},
          {"plain_ms", number(t.plain_ms)},
          {"ratio", number(t.plain_ms / t.module_ms)}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string json_report(const Validation& v) {
  static constexpr const char* kVerdicts[] = {"passed", "failed", "inconclusive"};
  static constexpr const char* kProblems[] = {"", "not_found", "import_failed", "lacks_functions"};
  Json json{{"schema", 1},
            {"verdict", kVerdicts[static_cast<int>(v.verdict)]},
            {"mode", v.mode},
            {"seed", std::to_string(v.seed)},
            {"module",
             {{"name", v.module},
              {"file", text_or_null(v.module_file)},
              {"problem", text_or_null(kProblems[static_cast<int>(v.module_problem)])},
              {"message", text_or_null(v.module_message)}}},
            {"python",
             {{"path", v.python},
              {"version", text_or_null(v.python_version)},
              {"torch", text_or_null(v.torch_version)}}},
            {"gpu", text_or_null(v.gpu)},
            {"not_completed", text_or_null(v.blocked)},
            {"notes", v.notes},
            {"seconds", number(v.seconds)}};
  json["refused"] = Json::array();
  for (const auto& [device, message] : v.refused)
    json["refused"].push_back({{"device", device}, {"message", message}});
  json["timing"] = Json::array();
  for (const Timing& timing : v.timings) json["timing"].push_back(timing_json(timing));
  json["cases"] = Json::array();
  for (const CaseResult& c : v.cases) json["cases"].push_back(case_json(c));
  // Messages may hold bytes of a module's own making; replace what is not UTF-8 instead of failing.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace scankit::validate
