// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/html_page.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/escape.h"

namespace scankit {

// The content security policy allows the styles of the page and data URLs for images, and forbids
// scripts and every access to the network. The icon is an empty data URL, because a browser would ask a
// server for one.
std::string html_page(const HtmlPage& page) {
  const std::string title = xml_escaped(page.title), command = xml_escaped(page.command);
  return "<!DOCTYPE html>\n<html lang=\"" +
         xml_escaped(spoken_language() == nullptr ? "en" : spoken_language()->code()) +
         "\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; img-src data:\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         command + ": " + title + "</title>\n<style>" + kHtmlStyle + page.style +
         "</style>\n</head>\n<body>\n<main>\n<p class=\"soft\">" + command + "</p>\n<h1 class=\"" +
         page.verdict + "\">" + title + "</h1>\n" + page.body + "</main>\n</body>\n</html>\n";
}

namespace html {

std::string code(std::string_view text) { return "<code>" + xml_escaped(text) + "</code>"; }
std::string paragraph(const std::string& html) { return "<p>" + html + "</p>\n"; }

std::string heading(const std::string& text) { return "<h2>" + xml_escaped(text) + "</h2>\n"; }

std::string table(const std::string& left, const std::string& right, const Rows& rows) {
  std::string out = "<table><thead><tr><th scope=\"col\">" + xml_escaped(left) + "</th><th scope=\"col\">" +
                    xml_escaped(right) + "</th></tr></thead><tbody>\n";
  for (const auto& [name, value] : rows) out += "<tr><td>" + name + "</td><td>" + value + "</td></tr>\n";
  return out + "</tbody></table>\n";
}

std::string folded(const std::string& title, const std::string& body) {
  return "<details><summary>" + xml_escaped(title) + "</summary>\n" + body + "</details>\n";
}

std::string bar(const std::string& title, const std::vector<Part>& parts) {
  std::size_t whole = 0, at = 0;
  for (const Part& part : parts) whole += part.count;
  if (whole == 0) return "";
  std::string svg = "<svg role=\"img\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\"><title>" +
                    xml_escaped(title) + "</title>";
  std::string legend = "<ul class=\"legend\">";
  // Positions are computed in thousandths of the bar from the running total, so that rounding adds
  // up to the whole.
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    const std::size_t start = at * 1000 / whole, end = (at + part.count) * 1000 / whole;
    at += part.count;
    // One missing symbol among hundreds is what matters, so a part is never too narrow to be seen.
    const std::size_t width = std::max<std::size_t>(end - start, 4);
    svg += "<rect class=\"" + std::string(part.style) + "\" x=\"" +
           std::to_string(std::min<std::size_t>(start, 1000 - width)) + "\" y=\"0\" width=\"" +
           std::to_string(width) + "\" height=\"20\"/>";
    legend += "<li><span class=\"key " + std::string(part.style) + "\"></span>" + xml_escaped(part.name) +
              ": " + std::to_string(part.count) + "</li>";
  }
  return paragraph(xml_escaped(title)) + svg + "</svg>\n" + legend + "</ul>\n";
}

}  // namespace html

}  // namespace scankit
