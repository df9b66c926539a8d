// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "doctor/base/say.h"
#include "doctor/report/document.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

// The figures of a validation: errors against their bounds, the roofline, times beside those of others, and times by length.
namespace scankit::validate {

std::string shape_name(const Timing& t) {
  return t.pass + " " + t.dtype + " B" + std::to_string(t.batch) + " D" + std::to_string(t.dim) + " L" +
         std::to_string(t.length) + " N" + std::to_string(t.states) + " " + t.cache;
}

std::string name_of(const Timing& t) { return t.device + " " + shape_name(t); }

double milliseconds(const Timing& t) {
  const auto mine = t.ms.find("module");
  return mine == t.ms.end() ? NAN : median_of(mine->second).middle;
}

// One point for each case: the share of its bound that its worst result used. A case without results is
// drawn at the lower edge if it passed, else at the upper one.
report::Plot error_plot(const Validation& v) {
  report::Plot plot{say("Error of each case, as a share of its bound"),
                    {say("case"), 0, 1, false},
                    {say("share of the bound; above 1 is wrong"), 1e-4, 10, true},
                    {},
                    {}};
  for (std::size_t i = 0; i < v.cases.size(); ++i) {
    const CaseResult& c = v.cases[i];
    double share = c.state == CaseState::Passed ? plot.y.low : plot.y.high;
    std::string which;
    for (const TensorResult& t : c.tensors)
      if (used(t) >= share) {
        share = used(t);
        which = t.name;
      }
    const report::Tone tone = c.state == CaseState::Passed   ? report::Tone::Good
                              : c.state == CaseState::NotRun ? report::Tone::None
                                                             : report::Tone::Error;
    plot.points.push_back({static_cast<double>(i), share, c.device + " " + c.id + " " + which, tone});
  }
  if (plot.points.empty()) return plot;
  plot.x.high = static_cast<double>(v.cases.size());
  plot.lines.push_back({say("bound"), {{0, 1}, {plot.x.high, 1}}, true});
  return plot;
}

namespace {

// The usual roofline diagram: operations for each byte against operations for each second. The two
// lines are the measured limits, and meet at the ridge, where a pass needs as much time for memory
// as for arithmetic.
report::Plot roofline(const Validation& v, const std::string& device, const Limits& limits) {
  report::Plot plot{say("Roofline of {}: how close each shape is to the measured limits", device),
                    {say("operations per byte"), 1, 100, true},
                    {say("operations per second"), 1e9, 1e13, true},
                    {},
                    {}};
  for (const Timing& t : v.timings) {
    if (t.device != device || t.cache == "host" || !(milliseconds(t) > 0)) continue;
    const Work work = work_of(t);
    const double rate = 1e3 * work.operations / milliseconds(t);
    const Roof roof = roof_of(t, limits);
    plot.points.push_back(
        {work.operations / work.bytes, rate,
         name_of(t) + ": " + std::to_string(std::lround(100 * roof.ms / milliseconds(t))) + " %",
         t.pass == "fwd" ? report::Tone::Good : report::Tone::Unknown});
  }
  if (plot.points.empty()) return plot;
  const double ridge = limits.fma / limits.copy;
  plot.lines.push_back({say("memory"), {{ridge, limits.fma}, {ridge / 30, limits.fma / 30}}, false});
  plot.lines.push_back({say("multiply-adds"), {{ridge, limits.fma}, {ridge * 30, limits.fma}}, false});
  report::fit_axes(plot);
  return plot;
}

// Bars of this run, the baseline and the other module.
report::BarChart times(const Validation& v) {
  std::map<std::size_t, double> before;
  for (const AgainstBaseline& c : v.compared) before[c.timing] = c.before_ms;
  report::BarChart chart{say("Time of each shape"), "ms", {}};
  for (std::size_t i = 0; i < v.timings.size(); ++i) {
    const Timing& t = v.timings[i];
    if (!(milliseconds(t) > 0)) continue;
    if (t.cache == "warm" && t.device != "cpu") continue;  // as a model meets it: cold
    report::BarChart::Group group{name_of(t), {{say("this run"), milliseconds(t)}}};
    if (before.contains(i)) group.bars.emplace_back(say("baseline"), before[i]);
    if (t.ms.contains("against"))
      group.bars.emplace_back(v.against.substr(v.against.rfind('/') + 1),
                              median_of(t.ms.at("against")).middle);
    chart.groups.push_back(std::move(group));
  }
  return chart;
}

// Time over length: one line for all lengths of what is otherwise the same shape.
report::Plot scaling(const Validation& v) {
  std::map<std::tuple<std::string, std::string, std::string, std::string, int, int>, report::PlotLine> lines;
  for (const Timing& t : v.timings) {
    if (t.cache == "host" || !(milliseconds(t) > 0)) continue;
    report::PlotLine& line = lines[{t.device, t.cache, t.pass, t.dtype, t.batch, t.dim}];
    line.points.emplace_back(t.length, milliseconds(t));
    line.name = t.pass + " " + t.dtype + " " + t.cache;
  }
  report::Plot plot{
      say("Time by length"), {say("steps"), 1, 10, true}, {say("milliseconds"), 1e-3, 10, true}, {}, {}};
  for (auto& [key, line] : lines) {
    if (line.points.size() < 2) continue;
    std::sort(line.points.begin(), line.points.end());
    for (const auto& [x, y] : line.points)
      plot.points.push_back(
          {x, y, line.name, std::get<2>(key) == "fwd" ? report::Tone::Good : report::Tone::Unknown});
    plot.lines.push_back(line);
  }
  if (plot.lines.empty()) return plot;
  report::fit_axes(plot);
  return plot;
}

}  // namespace

std::vector<report::Block> speed_figures(const Validation& v) {
  std::vector<report::Block> blocks;
  if (v.timings.empty()) return blocks;
  for (const auto& [device, limits] : v.limits)
    if (report::Plot plot = roofline(v, device, limits); !plot.points.empty())
      blocks.push_back(std::move(plot));
  blocks.push_back(times(v));
  if (report::Plot plot = scaling(v); !plot.lines.empty()) blocks.push_back(std::move(plot));
  return blocks;
}

}  // namespace scankit::validate
