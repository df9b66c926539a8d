// SPDX-License-Identifier: Apache-2.0
#include "validate/protocol.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "validate/random.h"

namespace scankit::validate {
namespace {

using Json = nlohmann::json;

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

Json timing_shape(const std::string& device, std::uint64_t seed) {
  const bool gpu = device != "cpu";
  return {{"device", device}, {"batch", 2},   {"dim", gpu ? 2048 : 256}, {"length", gpu ? 2048 : 512},
          {"states", 16},     {"seconds", 8}, {"seed", mix(seed) >> 12}};
}

TensorResult read_tensor(const Json& json) {
  TensorResult tensor{json.at("name"),
                      json.at("dtype"),
                      json.at("data"),
                      number(json.at("error")),
                      number(json.at("explained")),
                      number(json.at("bound")),
                      {}};
  const Json& worst = json.at("worst");
  tensor.worst = {worst.at("index").get<std::vector<std::int64_t>>(), number(worst.at("value")),
                  number(worst.at("expected")), number(worst.at("bound")), number(worst.at("ratio"))};
  return tensor;
}

void take_case(const Json& json, Validation& validation, ChildStory& story) {
  CaseResult result;
  result.id = json.at("id");
  result.device = json.at("device");
  result.seconds = number(json.at("seconds"));
  result.error = json.value("error", "");
  result.error_kind = json.value("error_kind", "");
  for (const Json& tensor : json.value("tensors", Json::array()))
    result.tensors.push_back(read_tensor(tensor));
  result.contract = json.value("contract", std::vector<std::string>{});
  result.modified = json.value("modified", std::vector<std::string>{});
  const Json differing = json.value("nondeterministic", Json::object());
  for (const auto& [name, difference] : differing.items())
    result.nondeterministic.emplace_back(name, number(difference));
  result.state = CaseState::Failed;  // until judged
  validation.cases.push_back(std::move(result));
  ++story.cases_done;
  story.started.clear();
}

void take_hello(const Json& json, Validation& validation, ChildStory& story) {
  validation.python_version = json.at("python");
  validation.torch_version = json.at("torch");
  validation.gpu = json.at("cuda");
  story.greeted = true;
}

void take_module(const Json& json, Validation& validation, ChildStory& story) {
  story.started.clear();
  if (!json.contains("problem")) {
    validation.module_file = json.at("file");
    return;
  }
  const std::string kind = json.at("problem");
  validation.module_problem = kind == "not_found"         ? ModuleProblem::NotFound
                              : kind == "lacks_functions" ? ModuleProblem::LacksFunctions
                                                          : ModuleProblem::ImportFailed;
  validation.module_message = json.at("message");
  story.ended = true;
}

void take_timing(const Json& json, Validation& validation, ChildStory&) {
  const Json& shape = json.at("shape");
  validation.timings.push_back({json.at("device"), json.at("pass"), json.at("dtype"), shape.at("batch"),
                                shape.at("dim"), shape.at("length"), shape.at("states"), json.at("rounds"),
                                number(json.at("module_ms")), number(json.at("plain_ms"))});
}

using Handler = void (*)(const Json&, Validation&, ChildStory&);
const std::map<std::string, Handler, std::less<>> kHandlers = {
    {"hello", take_hello},
    {"module", take_module},
    {"case", take_case},
    {"timing", take_timing},
    {"start",
     [](const Json& json, Validation&, ChildStory& story) {
       story.started = json.at("id");
       story.device = json.at("device");
     }},
    {"refused",
     [](const Json& json, Validation& validation, ChildStory& story) {
       validation.refused.emplace_back(json.at("device"), json.at("message"));
       story.started.clear();
     }},
    {"lacks",
     [](const Json& json, Validation& validation, ChildStory&) {
       validation.left_out = json.at("count");
       validation.notes.push_back(json.at("message"));
     }},
    {"no_torch",
     [](const Json& json, Validation& validation, ChildStory& story) {
       validation.blocked = json.at("message");
       story.ended = true;
     }},
    {"note", [](const Json& json, Validation& validation,
                ChildStory&) { validation.notes.push_back(json.at("message")); }},
    {"end",
     [](const Json&, Validation&, ChildStory& story) {
       story.ended = true;
       story.started.clear();
     }},
};

}  // namespace

std::string job_text(const Job& job) {
  Json options{{"mode", job.mode},
               {"module", job.module},
               {"start_timeout", job.start_seconds},
               {"case_timeout", job.case_seconds},
               {"tolerance",
                {{"factor", job.tolerance.factor},
                 {"fp32", job.tolerance.fp32},
                 {"half", job.tolerance.half},
                 {"step", job.tolerance.step}}},
               {"timing", Json::array()}};
  for (const std::string& device : job.timed_devices)
    options["timing"].push_back(timing_shape(device, job.seed));
  std::string text = options.dump() + "\n";
  for (const Task& task : job.tasks)
    text += R"({"device": ")" + task.device + R"(", "case": )" + case_to_json(*task.what) + "}\n";
  return text;
}

void take_line(std::string_view line, Validation& validation, ChildStory& story) {
  try {
    const Json json = Json::parse(line);
    const auto handler = kHandlers.find(json.at("type").get<std::string>());
    if (handler != kHandlers.end()) handler->second(json, validation, story);
  } catch (const Json::exception& error) {
    validation.notes.push_back(say("the harness said what we do not understand: {}", error.what()));
  }
}

}  // namespace scankit::validate
