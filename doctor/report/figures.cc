// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "doctor/base/say.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"

// Numbers are pixels of the viewBox; the page scales it.
namespace scankit::report {
namespace {

// The size of a plot and the margins around its frame; the right one has room for the names of lines.
constexpr double kWidth = 720, kHeight = 300, kLeft = 70, kRight = 110, kTop = 14, kBottom = 46;

std::string axis_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// The place of a value along the axis, 0 to 1. A value outside of it is at the edge, and NaN at
// the upper one.
double along(const Axis& axis, double value) {
  const auto scaled = [&](double v) { return axis.logarithmic ? std::log10(std::max(v, 1e-300)) : v; };
  const double low = scaled(axis.low), high = scaled(axis.high);
  const double part = high > low ? (scaled(value) - low) / (high - low) : 0.5;
  return std::isnan(part) ? 1 : std::clamp(part, 0.0, 1.0);
}
double x_of(const Axis& axis, double value) { return kLeft + along(axis, value) * (kWidth - kLeft - kRight); }
double y_of(const Axis& axis, double value) {
  return kHeight - kBottom - along(axis, value) * (kHeight - kTop - kBottom);
}

// Powers of ten on a logarithmic axis, at most about seven; six equal steps on a linear one.
std::vector<double> ticks(const Axis& axis) {
  std::vector<double> at;
  if (axis.logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9)),
              last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
    const int step = std::max(1, (last - first) / 6);
    for (int power = first; power <= last; power += step) at.push_back(std::pow(10.0, power));
    if (at.size() < 2) at = {axis.low, axis.high};
    return at;
  }
  constexpr int kTicks = 5;
  for (int i = 0; i <= kTicks; ++i) at.push_back(axis.low + (axis.high - axis.low) * i / kTicks);
  return at;
}

std::string svg_text(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + axis_number(x) + "\" y=\"" + axis_number(y) + "\" text-anchor=\"" + anchor + "\">" +
         xml_escaped(text) + "</text>";
}

std::string segment(double x1, double y1, double x2, double y2, const char* style) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + axis_number(x1) + "\" y1=\"" + axis_number(y1) +
         "\" x2=\"" + axis_number(x2) + "\" y2=\"" + axis_number(y2) + "\"/>";
}

std::string opened(const std::string& title, double height) {
  return "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 " + axis_number(kWidth) + " " + axis_number(height) +
         "\"><title>" + xml_escaped(title) + "</title>";
}

// The opened <svg> with grid, ticks and labels. plot_svg() closes it.
std::string frame(const Plot& plot) {
  std::string svg = opened(plot.title, kHeight);
  for (const double at : ticks(plot.x)) {
    const double x = x_of(plot.x, at);
    svg += segment(x, kTop, x, kHeight - kBottom, "grid") +
           svg_text(x, kHeight - kBottom + 16, "middle", axis_number(at));
  }
  for (const double at : ticks(plot.y)) {
    const double y = y_of(plot.y, at);
    svg += segment(kLeft, y, kWidth - kRight, y, "grid") + svg_text(kLeft - 6, y + 4, "end", axis_number(at));
  }
  return svg + svg_text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", plot.x.label);
}

std::string rect(const std::string& tone, double x, double y, double width, double height) {
  return "<rect class=\"" + tone + "\" x=\"" + axis_number(x) + "\" y=\"" + axis_number(y) + "\" width=\"" +
         axis_number(width) + "\" height=\"" + axis_number(height) + "\"/>";
}

// The lines of a plot with their names, and its points with what the mouse shows of each.
std::string drawn(const Plot& plot) {
  std::string svg;
  for (const PlotLine& line : plot.lines) {
    std::string path;
    for (const auto& [x, y] : line.points)
      path += (path.empty() ? "" : " ") + axis_number(x_of(plot.x, x)) + "," + axis_number(y_of(plot.y, y));
    svg +=
        "<polyline class=\"" + std::string(line.dashed ? "dashed" : "solid") + "\" points=\"" + path + "\"/>";
    if (!line.name.empty() && !line.points.empty())
      svg += svg_text(x_of(plot.x, line.points.back().first) + 5, y_of(plot.y, line.points.back().second) + 4,
                      "start", line.name);
  }
  for (const PlotPoint& point : plot.points)
    svg += "<circle class=\"" + fill_class(point.tone) + "\" cx=\"" + axis_number(x_of(plot.x, point.x)) +
           "\" cy=\"" + axis_number(y_of(plot.y, point.y)) + "\" r=\"4\"><title>" + xml_escaped(point.tip) +
           "</title></circle>";
  return svg;
}

}  // namespace

std::string fill_class(Tone tone) {
  switch (tone) {
    case Tone::Good:
      return "c-good";
    case Tone::Warning:
      return "c-warning";
    case Tone::Error:
      return "c-error";
    case Tone::Unknown:
      return "c-unknown";
    case Tone::Note:
    case Tone::None:
      return "c-none";
  }
  return "c-none";
}

// The parts, and below them a legend with the number of each, because not everybody can tell colours apart.
std::string bar_svg(const Bar& bar) {
  std::size_t whole = 0, at = 0;
  for (const BarPart& part : bar.parts) whole += part.count;
  if (whole == 0) return "";
  std::string svg = "<svg role=\"img\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\"><title>" +
                    xml_escaped(bar.title) + "</title>";
  std::string legend = "<ul class=\"legend\">";
  // Positions are computed in thousandths of the bar from the running total, so that rounding adds
  // up to the whole.
  for (const BarPart& part : bar.parts) {
    if (part.count == 0) continue;
    const std::size_t start = at * 1000 / whole, end = (at + part.count) * 1000 / whole;
    at += part.count;
    // One missing symbol among hundreds is what matters, so a part is never too narrow to be seen.
    const std::size_t width = std::max<std::size_t>(end - start, 4);
    svg += rect(fill_class(part.tone), static_cast<double>(std::min<std::size_t>(start, 1000 - width)), 0,
                static_cast<double>(width), 20);
    legend += "<li><span class=\"key " + fill_class(part.tone) + "\"></span>" +
              xml_escaped(say("{}: {}", part.name, part.count)) + "</li>";
  }
  return "<p>" + xml_escaped(bar.title) + "</p>\n" + svg + "</svg>\n" + legend + "</ul>\n";
}

std::string plot_svg(const Plot& plot) {
  if (plot.points.empty() && plot.lines.empty()) return "";
  return "<p>" + xml_escaped(plot.title) + "</p>\n<p class=\"soft\">" + xml_escaped(plot.y.label) + "</p>\n" +
         frame(plot) + drawn(plot) + "</svg>\n";
}

// The longest bar of all groups has the full width, so that bars of different groups can be compared.
std::string chart_svg(const BarChart& chart) {
  if (chart.groups.empty()) return "";
  double longest = 0, height = 10;
  for (const BarChart::Group& group : chart.groups) {
    for (const auto& bar : group.bars) longest = std::max(longest, bar.second);
    height += 18 + 14 * static_cast<double>(group.bars.size()) + 6;
  }
  std::string svg = opened(chart.title, height);
  double y = 14;
  for (const BarChart::Group& group : chart.groups) {
    svg += svg_text(4, y, "start", group.name);
    y += 6;
    for (std::size_t i = 0; i < group.bars.size(); ++i, y += 14) {
      const auto& [who, value] = group.bars[i];
      const double width = longest > 0 ? std::max(value / longest * (kWidth - 270), 1.0) : 1;
      svg += rect(fill_class(i == 0 ? Tone::Good : Tone::None), 4, y, width, 11) +
             svg_text(width + 10, y + 10, "start", axis_number(value) + " " + chart.unit + "  " + who);
    }
    y += 18;
  }
  return "<p>" + xml_escaped(chart.title) + "</p>\n" + svg + "</svg>\n";
}

void fit_axes(Plot& plot) {
  const auto fit = [&](Axis& axis, bool x) {
    double low = INFINITY, high = -INFINITY;
    const auto take = [&](double value) {
      if (!std::isfinite(value) || (axis.logarithmic && value <= 0)) return;
      low = std::min(low, value);
      high = std::max(high, value);
    };
    for (const PlotPoint& point : plot.points) take(x ? point.x : point.y);
    for (const PlotLine& line : plot.lines)
      for (const auto& [px, py] : line.points) take(x ? px : py);
    if (low > high) return;
    axis.low = axis.logarithmic ? low / 1.5 : std::min(low, 0.0);
    axis.high = axis.logarithmic ? high * 1.5 : high * 1.05;
  };
  fit(plot.x, true);
  fit(plot.y, false);
}

}  // namespace scankit::report
