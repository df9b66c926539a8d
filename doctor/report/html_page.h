// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scankit {

// A page that opens without a network, also from a mail. Its policy makes sure that nothing in it, were it
// ever not escaped, runs or loads anything.
struct HtmlPage {
  std::string command;  // "scankit doctor"
  std::string title;    // escaped here, as the command is
  std::string verdict;  // a class of kHtmlStyle: "healthy", "broken", "unknown"
  std::string style;    // beside kHtmlStyle
  std::string body;     // HTML, below the title
};
std::string html_page(const HtmlPage& page);

// Pieces of such a page. Text is escaped here; what is called html, and rows, are HTML already.
namespace html {

std::string code(std::string_view text);
std::string paragraph(const std::string& html);
std::string heading(const std::string& text);
using Rows = std::vector<std::pair<std::string, std::string>>;
std::string table(const std::string& left, const std::string& right, const Rows& rows);
std::string folded(const std::string& title, const std::string& html);

struct Part {
  std::string name;
  const char* style;
  std::size_t count;
};
// One bar of parts that add up, each named with its number below: colour alone says nothing.
std::string bar(const std::string& title, const std::vector<Part>& parts);

}  // namespace html

}  // namespace scankit
