// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

// Diagrams as inline SVG: no script, no font, no network.
namespace scankit::validate {

// The range of an axis in the unit of its values. A logarithmic axis needs low > 0.
struct Axis {
  std::string label;
  double low = 0, high = 1;
  bool logarithmic = false;
};
struct Point {
  double x = 0, y = 0;
  std::string tip;             // what the mouse shows
  const char* style = "good";  // a class of plot_style(): "good", "error", "unknown", "none"
};
struct Line {
  std::string name;  // written at its right end
  std::vector<std::pair<double, double>> points;
  bool dashed = false;
};
struct Plot {
  std::string title;
  Axis x, y;
  std::vector<Line> lines;
  std::vector<Point> points;
};
// "" where there is nothing to draw. Points outside of the axes are drawn at their edge.
std::string plot_svg(const Plot& plot);

// Horizontal bars in pairs, one group a row, beside their names.
struct BarRow {
  std::string name;
  std::vector<std::pair<std::string, double>> values;  // who, how long
};
std::string bars_svg(const std::string& title, const std::string& unit, const std::vector<BarRow>& rows);

// Axes that hold all points, with room around them.
void fit_axes(Plot& plot);

extern const char* const kPlotStyle;

}  // namespace scankit::validate
