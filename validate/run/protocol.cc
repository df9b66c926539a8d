// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "validate/cases/random.h"
#include "validate/run/run.h"

// The protocol between scankit and the harness (harness/channel.py has the other side). The job goes to
// standard input: one JSON object with options, then one for each task. Answers come as JSON lines on
// descriptor 3, each with a "type" that selects a handler in kHandlers. An unknown type is ignored; a line
// that does not parse becomes a note.
namespace scankit::validate {
namespace {

using Json = nlohmann::json;

// JSON has no infinities and no NaN: the harness writes them as text.
double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

// The seed is cut to 52 bits, which JSON readers keep exactly.
Json timed_shape_json(const TimedShape& shape, std::uint64_t seed) {
  return {{"device", shape.device},   {"dtype", shape.dtype},   {"batch", shape.batch},
          {"dim", shape.dim},         {"length", shape.length}, {"states", shape.states},
          {"seconds", shape.seconds}, {"plain", shape.plain},   {"host", shape.host},
          {"seed", mix(seed) >> 12}};
}

TensorResult read_tensor(const Json& json) {
  TensorResult tensor{json.at("name"),
                      json.at("dtype"),
                      json.at("data"),
                      number_of(json.at("error")),
                      number_of(json.at("explained")),
                      number_of(json.at("bound")),
                      {}};
  const Json& worst = json.at("worst");
  tensor.worst = {worst.at("index").get<std::vector<std::int64_t>>(),
                  number_of(worst.at("value")),
                  number_of(worst.at("expected")),
                  number_of(worst.at("bound")),
                  number_of(worst.at("ratio")),
                  {}};
  for (const Json& input : worst.value("inputs", Json::array()))
    tensor.worst.inputs.emplace_back(input.at(0), number_of(input.at(1)));
  return tensor;
}

// The result of one case. It counts as Failed until judge_case() has seen it.
void take_case(const Json& json, Validation& validation, ChildStory& story) {
  CaseResult result;
  result.id = json.at("id");
  result.device = json.at("device");
  result.seconds = number_of(json.at("seconds"));
  result.error = json.value("error", "");
  result.error_kind = json.value("error_kind", "");
  for (const Json& tensor : json.value("tensors", Json::array()))
    result.tensors.push_back(read_tensor(tensor));
  result.contract = json.value("contract", std::vector<std::string>{});
  result.modified = json.value("modified", std::vector<std::string>{});
  const Json differing = json.value("nondeterministic", Json::object());
  for (const auto& [name, difference] : differing.items())
    result.nondeterministic.emplace_back(name, number_of(difference));
  result.state = CaseState::Failed;  // until judged
  validation.cases.push_back(std::move(result));
  ++story.cases_done;
  ++story.done[validation.cases.back().device];
  story.started.clear();
}

// How many cases the child will report on each device, once it knows the devices and
// the module's functions.
void take_plan(const Json& json, Validation&, ChildStory& story) {
  story.plan = json.at("cases").get<std::map<std::string, std::size_t>>();
}

// The first line of a child: versions and devices. Each child sends it, and all say the same.
void take_hello(const Json& json, Validation& validation, ChildStory& story) {
  validation.python_version = json.at("python");
  validation.torch_version = json.at("torch");
  validation.gpu = json.at("cuda");
  validation.gpus = json.value("gpus", std::map<std::string, std::string>{});
  validation.cpu = json.value("cpu", "");
  validation.gpu_shared = json.value("cuda_shared", false);
  validation.gpu_problem = json.value("cuda_problem", "");
  story.greeted = true;
}

// The module was imported, or could not be; then the child ends, and no further one is started.
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
  Timing timing{json.at("device"),
                json.at("pass"),
                json.at("dtype"),
                shape.at("batch"),
                shape.at("dim"),
                shape.at("length"),
                shape.at("states"),
                json.at("cache"),
                {},
                {},
                {}};
  const Json& sides = json.at("ms");
  const Json& state = json.at("state");
  for (const auto& [side, samples] : sides.items())
    for (const Json& sample : samples) timing.ms[side].push_back(number_of(sample));
  timing.wall_ms = json.value("wall", 0.0);
  timing.in_a_row_ms = json.value("in_a_row", 0.0);
  if (json.at("peak").is_number()) timing.peak = number_of(json.at("peak"));
  for (const auto& [name, value] : state.items()) timing.state[name] = number_of(value);
  validation.timings.push_back(std::move(timing));
}

void take_limits(const Json& json, Validation& validation, ChildStory&) {
  validation.limits[json.at("device")] = {number_of(json.at("copy")), number_of(json.at("fma")),
                                          number_of(json.at("exp")), json.value("cached_copy", 0.0),
                                          json.value("cache", 0.0)};
}

// The answer to one KernelQuestion. Answers come in the order of the questions.
void take_kernel(const Json& json, Validation&, ChildStory& story) {
  KernelUse use;
  use.registers = json.at("registers");
  use.stack_bytes = json.at("stack_bytes");
  use.static_shared_bytes = json.at("static_shared_bytes");
  use.blocks_per_multiprocessor = json.at("blocks_per_multiprocessor");
  story.kernels.push_back(std::move(use));
}

void take_gpu_facts(const Json& json, Validation& validation, ChildStory&) {
  for (const auto& [name, value] : json.items())
    if (value.is_number_integer()) validation.gpu_facts[name] = value.get<int>();
}

void take_against(const Json& json, Validation& validation, ChildStory& story) {
  story.started.clear();
  validation.against_file = json.value("file", "");
  validation.against_problem = json.value("message", "");
}

// Every child of a run says the same about the machine; the note is kept once.
void take_note(Validation& validation, const std::string& text) {
  auto& notes = validation.notes;
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

using Handler = void (*)(const Json&, Validation&, ChildStory&);
const std::map<std::string, Handler, std::less<>> kHandlers = {
    {"hello", take_hello},
    {"module", take_module},
    {"case", take_case},
    {"plan", take_plan},
    {"timing", take_timing},
    {"limits", take_limits},
    {"against", take_against},
    {"gpu_facts", take_gpu_facts},
    {"kernel", take_kernel},
    {"devices", [](const Json& json, Validation&, ChildStory& story) { story.gpus = json.at("gpus"); }},
    {"start",
     [](const Json& json, Validation&, ChildStory& story) {
       story.started = json.at("id");
       story.device = json.at("device");
     }},
    {"refused",
     [](const Json& json, Validation& validation, ChildStory& story) {
       const std::string device = json.at("device");
       validation.refused.emplace_back(device, json.at("message"));
       story.plan[device] = story.done[device];  // nothing more comes from there
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
       validation.torch_import_failed = true;
       story.ended = true;
     }},
    {"note", [](const Json& json, Validation& validation,
                ChildStory&) { take_note(validation, json.at("message")); }},
    {"no_bands",
     [](const Json& json, Validation& validation, ChildStory& story) {
       take_note(validation, json.at("message"));
       story.without_bands = story.ended = true;
     }},
    {"end",
     [](const Json&, Validation&, ChildStory& story) {
       story.ended = true;
       story.started.clear();
     }},
};

// 1 of "cuda:1".
int gpu_number(std::string_view device) {
  int number = 0;
  const std::string_view digits = device.substr(std::min(device.size(), device.find(':') + 1));
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

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
  if (!job.against.empty()) options["against"] = job.against;
  if (!job.alone.empty()) options["alone"] = job.alone;
  if (!job.gpu_bands.empty()) options["gpu_bands"] = job.gpu_bands;
  if (!job.model_devices.empty())
    options["model"] = {
        {"devices", job.model_devices}, {"upstream", job.upstream_model}, {"seed", mix(job.seed) >> 12}};
  if (job.mode == "kernels") options.update({{"kernels", Json::array()}, {"gpu", gpu_number(job.device)}});
  for (const KernelQuestion& kernel : job.kernels)
    options["kernels"].push_back({{"image", kernel.image},
                                  {"symbol", kernel.symbol},
                                  {"threads", kernel.threads},
                                  {"dynamic_shared", kernel.dynamic_shared}});
  for (const TimedShape& shape : job.timed) options["timing"].push_back(timed_shape_json(shape, job.seed));
  // The task lines are put together as text: case_to_json() gives a finished JSON object.
  std::string text = dump_json(options) + "\n";
  for (const Task& task : job.tasks)
    text += R"({"device": ")" + task.device + R"(", "case": )" + case_to_json(*task.what) + "}\n";
  return text;
}

// A module could write to descriptor 3 itself, so that nothing here may throw.
void take_line(std::string_view line, Validation& validation, ChildStory& story) {
  try {
    const Json json = parse_json<Json>(line);
    const auto handler = kHandlers.find(json.at("type").get<std::string>());
    if (handler != kHandlers.end()) handler->second(json, validation, story);
  } catch (const Json::exception& error) {
    validation.notes.push_back(say("unexpected output of the harness: {}", error.what()));
  }
}

void take_lines(std::string_view channel, Validation& validation, ChildStory& story) {
  for (std::size_t end = channel.find('\n'); end != std::string_view::npos; end = channel.find('\n')) {
    take_line(channel.substr(0, end), validation, story);
    channel.remove_prefix(end + 1);
  }
}

}  // namespace scankit::validate
