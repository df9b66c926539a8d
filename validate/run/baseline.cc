// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "validate/judge/speed.h"

// Compares the timings with the JSON of an earlier run (--baseline). The file is the user's, but may have
// been edited: every access is checked or inside a try block.
namespace scankit::validate {
namespace {

using Json = nlohmann::json;
// The ratio above which a pass counts as slower; below it two runs of one binary differ by chance.
constexpr double kRegressed = 1.1;

bool same_pass(const Json& row, const Timing& t) {
  const Json& shape = row.at("shape");
  return row.at("device") == t.device && row.at("pass") == t.pass && row.at("dtype") == t.dtype &&
         row.at("cache") == t.cache && shape.at("batch") == t.batch && shape.at("dim") == t.dim &&
         shape.at("length") == t.length && shape.at("states") == t.states;
}

// Why times of the two runs cannot be compared: they were taken on devices of different names. ""
// where they can.
std::string another_device(const Json& json, const Validation& v, const std::string& device) {
  const bool cpu = device == "cpu";
  const std::string then = json_text(json, cpu ? "cpu" : "gpu"), now = cpu ? v.cpu : v.gpu;
  return then == now
             ? ""
             : say("the baseline was taken on {}, and this is {}", then.empty() ? say("no GPU") : then, now);
}

// The ratio's interval divides the ends of the two medians' intervals crosswise, so that it contains
// every ratio that the two allow. Regressed only if all of it is above the limit and nothing
// disturbed the measurement.
void compare_row(Validation& v, std::size_t index, const Json& row) {
  const Timing& timing = v.timings[index];
  const Json& interval = row.at("module_interval");
  const double before_low = interval.at(0), before_high = interval.at(1);
  const Interval now = median_of(timing.ms.at("module"));
  AgainstBaseline compared{index, row.at("module_ms"), now.low / before_high, now.high / before_low, false};
  compared.regressed = compared.low > kRegressed && disturbance(timing).empty();
  v.compared.push_back(compared);
}

}  // namespace

std::string baseline_form_problem(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return say("this is not JSON");
  const auto rows = json.is_object() ? json.find("timing") : json.end();
  if (!json.is_object() || rows == json.end() || !rows->is_array())
    return say("this is JSON, but not from scankit validate");
  return rows->empty() ? say("its run timed nothing") : "";
}

std::string baseline_device_problem(const Validation& v, const std::vector<std::string>& devices,
                                    const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  for (const std::string& device : devices) {
    if (!json.is_object() || (device != "cpu" && v.gpu.empty())) continue;
    if (std::string why = another_device(json, v, device); !why.empty()) return why;
  }
  return "";
}

void compare_with_baseline(Validation& v, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    for (std::size_t i = 0; i < v.timings.size(); ++i) {
      const Timing& timing = v.timings[i];
      if (const std::string why = another_device(json, v, timing.device); !why.empty()) {
        v.baseline_problem = why;
        continue;
      }
      for (const Json& row : json.at("timing"))
        if (same_pass(row, timing)) compare_row(v, i, row);
    }
    if (v.compared.empty() && v.baseline_problem.empty())
      v.baseline_problem = v.timings.empty()
                               ? say("nothing was timed that the baseline could be compared with")
                               : say("the baseline contains none of the timed passes");
  } catch (const Json::exception&) {
    v.baseline_problem = say("{} is not JSON from a scankit validate that timed something", v.baseline);
  }
}

}  // namespace scankit::validate
