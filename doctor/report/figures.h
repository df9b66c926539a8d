// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/report/document.h"

// The drawings of a page as inline SVG: no script, no font, no network. "" where there is nothing to draw. Their colours are
// classes of the page's style sheet, which has a light and a dark scheme.
namespace scankit {

// "c-good": the class that fills a shape.
std::string fill_class(Tone tone);

std::string bar_svg(const Bar& bar);
// Points outside of the axes are drawn at their edge.
std::string plot_svg(const Plot& plot);
std::string chart_svg(const BarChart& chart);

}  // namespace scankit
