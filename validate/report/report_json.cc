// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "doctor/model/json.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

// The JSON of `--json`. validate/README.md lists the fields; judge/speed.cc reads "timing" of an earlier run.
// Fields are only added, unless "schema" changes.
namespace scankit::validate {
namespace {

using OrderedJson = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
OrderedJson json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

OrderedJson tensor_result_json(const TensorResult& t) {
  OrderedJson inputs = OrderedJson::object();
  for (const auto& [name, value] : t.worst.inputs) inputs[name] = json_number(value);
  return {{"name", t.name},
          {"dtype", t.dtype},
          {"data", t.data},
          {"error", json_number(t.error)},
          {"explained", json_number(t.explained)},
          {"bound", json_number(t.bound)},
          {"worst",
           {{"index", t.worst.index},
            {"value", json_number(t.worst.value)},
            {"expected", json_number(t.worst.expected)},
            {"bound", json_number(t.worst.bound)},
            {"ratio", json_number(t.worst.ratio)},
            {"inputs", std::move(inputs)}}}};
}

// The words are part of the format and must not be translated. Their order is that of CaseState.
OrderedJson case_json(const CaseResult& c) {
  static constexpr const char* kStates[] = {"passed", "failed", "crashed", "hung", "not_run"};
  OrderedJson json{{"id", c.id},
                   {"device", c.device},
                   {"state", kStates[static_cast<int>(c.state)]},
                   {"reasons", c.reasons},
                   {"error_kind", c.error_kind.empty() ? OrderedJson() : OrderedJson(c.error_kind)},
                   {"modified", c.modified},
                   {"seconds", json_number(c.seconds)}};
  json["nondeterministic"] = OrderedJson::object();
  for (const auto& [name, difference] : c.nondeterministic)
    json["nondeterministic"][name] = json_number(difference);
  json["tensors"] = OrderedJson::array();
  for (const TensorResult& tensor : c.tensors) json["tensors"].push_back(tensor_result_json(tensor));
  return json;
}

OrderedJson text_or_null(const std::string& text) { return text.empty() ? OrderedJson() : OrderedJson(text); }

OrderedJson interval_json(const Interval& i) { return {json_number(i.low), json_number(i.high)}; }

// One pass: the module's median, its ratio to plain PyTorch and the other module, the share of the
// device's limit that it reaches, and its baseline. `index` is its place in v.timings, by which v.compared
// refers to it.
OrderedJson timing_json(const Validation& v, std::size_t index) {
  const Timing& t = v.timings[index];
  const auto mine = t.ms.find("module");
  const Interval ms = mine == t.ms.end() ? Interval{} : median_of(mine->second);
  OrderedJson json{
      {"device", t.device},
      {"pass", t.pass},
      {"dtype", t.dtype},
      {"cache", t.cache},
      {"shape", {{"batch", t.batch}, {"dim", t.dim}, {"length", t.length}, {"states", t.states}}},
      {"rounds", mine == t.ms.end() ? 0 : mine->second.size()},
      {"module_ms", json_number(ms.middle)},
      {"module_interval", interval_json(ms)},
      {"peak_bytes", t.peak ? json_number(*t.peak) : OrderedJson()},
      {"disturbed", text_or_null(disturbance(t))}};
  if (t.ms.contains("plain")) {
    json["plain_ms"] = json_number(median_of(t.ms.at("plain")).middle);
    json["ratio"] = json_number(times_plain(t));
  }
  if (t.ms.contains("against")) {
    const Comparison c = compare(t, "against");
    json["against"] = {{"ms", json_number(median_of(t.ms.at("against")).middle)},
                       {"ratio", json_number(c.ratio.middle)},
                       {"interval", interval_json(c.ratio)},
                       {"verdict", pace_word(c.pace)},
                       {"why", text_or_null(c.why)}};
  }
  const auto limits = v.limits.find(t.device);
  if (limits != v.limits.end() && t.cache != "host") {
    const Work work = work_of(t);
    const Roof roof = roof_of(t, limits->second);
    json["bytes_per_s"] = json_number(1e3 * work.bytes / ms.middle);
    json["flop_per_s"] = json_number(1e3 * work.flops / ms.middle);
    json["exp_per_s"] = json_number(1e3 * work.exponentials / ms.middle);
    json["limit"] = {
        {"by", roof.limit}, {"ms", json_number(roof.ms)}, {"reached", json_number(roof.ms / ms.middle)}};
  }
  for (const AgainstBaseline& c : v.compared)
    if (c.timing == index)
      json["baseline"] = {{"ms", json_number(c.before_ms)},
                          {"ratio", {json_number(c.low), json_number(c.high)}},
                          {"regressed", c.regressed}};
  json["gpu_state"] = t.state;
  return json;
}

// Occupancy and waves are null where the driver was not asked.
OrderedJson kernels_json(const Validation& v) {
  OrderedJson json = OrderedJson::array();
  for (const KernelUse& k : v.kernels) {
    const Fit fit = fit_of(k, v);
    json.push_back(
        {{"unit", k.unit},
         {"name", k.name},
         {"of", k.of},
         {"registers", k.registers},
         {"stack_bytes", k.stack_bytes},
         {"static_shared_bytes", k.static_shared_bytes},
         {"dynamic_shared_bytes", k.dynamic_shared_bytes},
         {"threads", k.threads},
         {"blocks", k.blocks},
         {"blocks_per_multiprocessor", fit.known ? OrderedJson(k.blocks_per_multiprocessor) : OrderedJson()},
         {"occupancy", fit.known ? json_number(fit.occupancy) : OrderedJson()},
         {"waves", fit.known ? json_number(fit.waves) : OrderedJson()},
         {"bank_conflicts", k.bank_conflicts ? json_number(*k.bank_conflicts) : OrderedJson()}});
  }
  return json;
}

OrderedJson against_json(const Validation& v) {
  if (v.against.empty()) return nullptr;
  OrderedJson json{{"name", v.against},
                   {"file", text_or_null(v.against_file)},
                   {"problem", text_or_null(v.against_problem)}};
  json["cases"] = OrderedJson::array();
  for (const CaseResult& c : v.against_cases) json["cases"].push_back(case_json(c));
  return json;
}

}  // namespace

std::string json_report(const Validation& v) {
  static constexpr const char* kVerdicts[] = {"passed", "failed", "inconclusive"};
  static constexpr const char* kProblems[] = {"", "not_found", "import_failed", "lacks_functions"};
  OrderedJson json{{"schema", 1},
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
                   {"gpus", v.gpus},
                   {"cpu", text_or_null(v.cpu)},
                   {"not_completed", text_or_null(v.blocked)},
                   {"notes", v.notes},
                   {"seconds", json_number(v.seconds)}};
  json["refused"] = OrderedJson::array();
  for (const auto& [device, message] : v.refused)
    json["refused"].push_back({{"device", device}, {"message", message}});
  json["timing"] = OrderedJson::array();
  for (std::size_t i = 0; i < v.timings.size(); ++i) json["timing"].push_back(timing_json(v, i));
  json["limits"] = OrderedJson::object();
  for (const auto& [device, limits] : v.limits)
    json["limits"][device] = {{"copy_bytes_per_s", json_number(limits.copy)},
                              {"fma_per_s", json_number(limits.fma)},
                              {"exp_per_s", json_number(limits.exp)},
                              {"cached_copy_bytes_per_s",
                               limits.cached_copy > 0 ? json_number(limits.cached_copy) : OrderedJson()}};
  json["harness"] = OrderedJson::object();
  for (const auto& [device, limits] : v.limits)
    if (const HarnessCost cost = harness_cost(v, device); cost.known)
      json["harness"][device] = {{"added", json_number(cost.added)}, {"around", json_number(cost.around)}};
  json["kernels"] = kernels_json(v);
  json["against"] = against_json(v);
  json["baseline"] = v.baseline.empty()
                         ? OrderedJson()
                         : OrderedJson{{"file", v.baseline}, {"problem", text_or_null(v.baseline_problem)}};
  json["cases"] = OrderedJson::array();
  for (const CaseResult& c : v.cases) json["cases"].push_back(case_json(c));
  // Messages may hold bytes of a module's own making; replace what is not UTF-8 instead of failing.
  return json_document(json);
}

}  // namespace scankit::validate
