// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "doctor/report/html_page.h"
#include "validate/judge/judge.h"
#include "validate/judge/speed.h"
#include "validate/report/plot.h"
#include "validate/report/report.h"

// The HTML report: one page with its plots inside, which needs no network and no script.
// doctor/report/html.cc has the page's frame and style.
namespace scankit::validate {
namespace {

using html::code;
using html::heading;
std::string paragraph(const std::string& text) { return html::paragraph(xml_escaped(text)); }

std::string device_pass_name(const Timing& t) {
  return t.device + " " + t.pass + " " + t.dtype + " B" + std::to_string(t.batch) + " D" +
         std::to_string(t.dim) + " L" + std::to_string(t.length) + " N" + std::to_string(t.states) + " " +
         t.cache;
}

double milliseconds(const Timing& t) {
  const auto mine = t.ms.find("module");
  return mine == t.ms.end() ? NAN : median_of(mine->second).middle;
}

// One point for each case: the share of its bound that its worst result used. A case without results is
// drawn at the lower edge if it passed, else at the upper one.
std::string error_plot(const Validation& v) {
  Plot plot{say("Error of each case, as a share of its bound"),
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
    const char* style = c.state == CaseState::Passed   ? "good"
                        : c.state == CaseState::NotRun ? "none"
                                                       : "error";
    plot.points.push_back({static_cast<double>(i), share, c.device + " " + c.id + " " + which, style});
  }
  if (plot.points.empty()) return "";
  plot.x.high = static_cast<double>(v.cases.size());
  plot.lines.push_back({say("bound"), {{0, 1}, {plot.x.high, 1}}, true});
  return plot_svg(plot);
}

// The usual roofline diagram: operations for each byte against operations for each second. The two
// lines are the measured limits, and meet at the ridge, where a pass needs as much time for memory
// as for arithmetic.
std::string roofline(const Validation& v, const std::string& device, const Limits& limits) {
  Plot plot{say("Roofline of {}: how close each shape is to the measured limits", device),
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
         device_pass_name(t) + ": " + std::to_string(std::lround(100 * roof.ms / milliseconds(t))) + " %",
         t.pass == "fwd" ? "good" : "unknown"});
  }
  if (plot.points.empty()) return "";
  const double ridge = limits.fma / limits.copy;
  plot.lines.push_back({say("memory"), {{ridge, limits.fma}, {ridge / 30, limits.fma / 30}}, false});
  plot.lines.push_back({say("multiply-adds"), {{ridge, limits.fma}, {ridge * 30, limits.fma}}, false});
  fit_axes(plot);
  return plot_svg(plot);
}

// Bars of this run, the baseline and the other module.
std::string times(const Validation& v) {
  std::map<std::size_t, double> before;
  for (const AgainstBaseline& c : v.compared) before[c.timing] = c.before_ms;
  std::vector<BarRow> rows;
  for (std::size_t i = 0; i < v.timings.size(); ++i) {
    const Timing& t = v.timings[i];
    if (!(milliseconds(t) > 0)) continue;
    if (t.cache == "warm" && t.device != "cpu") continue;  // as a model meets it: cold
    BarRow row{device_pass_name(t), {{say("this run"), milliseconds(t)}}};
    if (before.contains(i)) row.values.emplace_back(say("baseline"), before[i]);
    if (t.ms.contains("against"))
      row.values.emplace_back(v.against.substr(v.against.rfind('/') + 1),
                              median_of(t.ms.at("against")).middle);
    rows.push_back(std::move(row));
  }
  return bars_svg(say("Time of each shape"), "ms", rows);
}

// Time over length: one line for all lengths of what is otherwise the same shape.
std::string scaling(const Validation& v) {
  std::map<std::tuple<std::string, std::string, std::string, std::string, int, int>, Line> lines;
  for (const Timing& t : v.timings) {
    if (t.cache == "host" || !(milliseconds(t) > 0)) continue;
    Line& line = lines[{t.device, t.cache, t.pass, t.dtype, t.batch, t.dim}];
    line.points.emplace_back(t.length, milliseconds(t));
    line.name = t.pass + " " + t.dtype + " " + t.cache;
  }
  Plot plot{
      say("Time by length"), {say("steps"), 1, 10, true}, {say("milliseconds"), 1e-3, 10, true}, {}, {}};
  for (auto& [key, line] : lines) {
    if (line.points.size() < 2) continue;
    std::sort(line.points.begin(), line.points.end());
    for (const auto& [x, y] : line.points)
      plot.points.push_back({x, y, line.name, std::get<2>(key) == "fwd" ? "good" : "unknown"});
    plot.lines.push_back(line);
  }
  if (plot.lines.empty()) return "";
  fit_axes(plot);
  return plot_svg(plot);
}

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// What each launched kernel takes of the GPU.
std::string kernels(const Validation& v) {
  if (v.kernels.empty()) return "";
  std::string out = "<table><thead><tr>";
  for (const std::string& name :
       {say("kernel"), say("registers"), say("stack"), say("shared"), say("threads"), say("blocks/SM"),
        say("occupancy"), say("waves"), say("bank conflicts"), say("of")})
    out += "<th scope=\"col\">" + xml_escaped(name) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const KernelUse& k : v.kernels) {
    const Fit fit = fit_of(k, v);
    const std::string cells[] = {k.unit + " " + k.name,
                                 std::to_string(k.registers),
                                 std::to_string(k.stack_bytes),
                                 std::to_string(k.static_shared_bytes + k.dynamic_shared_bytes),
                                 std::to_string(k.threads),
                                 fit.known ? std::to_string(k.blocks_per_multiprocessor) : "?",
                                 fit.known ? fixed(100 * fit.occupancy) + " %" : "?",
                                 fit.known ? fixed(fit.waves) : "?",
                                 k.bank_conflicts ? fixed(100 * *k.bank_conflicts) + " %" : "-",
                                 k.of};
    out += "<tr>";
    for (const std::string& cell : cells) out += "<td>" + xml_escaped(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string failed_cases(const std::string& title, const std::vector<CaseResult>& cases) {
  std::string out;
  for (const CaseResult& c : cases) {
    if (c.state == CaseState::Passed) continue;
    out += "<section class=\"finding " + std::string(c.state == CaseState::NotRun ? "note" : "error") +
           "\">\n<h3>" + code(c.device + " " + c.id) + "</h3>\n";
    for (const std::string& reason : c.reasons) out += paragraph(reason);
    out += "</section>\n";
  }
  return out.empty() ? out : heading(title) + out;
}

std::string table(const Validation& v) {
  std::string out = "<table><thead><tr><th scope=\"col\">" + xml_escaped(say("item")) +
                    "</th><th scope=\"col\">" + xml_escaped(say("value")) + "</th></tr></thead><tbody>\n";
  const std::pair<std::string, std::string> rows[] = {
      {say("module"), v.module_file.empty() ? v.module : v.module_file},
      {"python", v.python + " " + v.python_version},
      {"torch", v.torch_version},
      {say("gpu"), v.gpu},
      {"cpu", v.cpu},
      {say("seed"), std::to_string(v.seed)},
      {say("compared with"), v.against_file}};
  for (const auto& [name, value] : rows)
    if (!value.empty()) out += "<tr><td>" + xml_escaped(name) + "</td><td>" + code(value) + "</td></tr>\n";
  return out + "</tbody></table>\n";
}

}  // namespace

std::string html_report(const Validation& v) {
  const char* style = v.verdict == Verdict::Passed   ? "healthy"
                      : v.verdict == Verdict::Failed ? "broken"
                                                     : "unknown";
  std::string out = table(v);
  if (!v.module_message.empty()) out += paragraph(v.module_message);
  if (!v.blocked.empty()) out += paragraph(say("not completed: {}", v.blocked));
  if (!v.baseline_problem.empty()) out += paragraph(v.baseline_problem);
  for (const std::string& note : v.notes) out += paragraph(say("note: {}", note));
  out += failed_cases(say("Failed"), v.cases) + heading(say("Correctness")) + error_plot(v);
  if (!v.timings.empty()) {
    out += heading(say("Speed"));
    for (const auto& [device, limits] : v.limits) out += roofline(v, device, limits);
    out += times(v) + scaling(v) + kernels(v);
  }
  out += failed_cases(say("What {} gets wrong", v.against), v.against_cases);
  return html_page({"scankit validate", verdict_line(v), style, kPlotStyle, out});
}

}  // namespace scankit::validate
