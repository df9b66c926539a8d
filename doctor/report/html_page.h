// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The frame and the style of doctor_html(). Everything is inside the page, because it must open without a
// network, also as an attachment of a mail. The style sheet has both a light and a dark set of colours.

namespace scankit {

inline constexpr const char* kHtmlStyle = R"css(
:root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#59636e;--line:#d1d9e0;--box:#f6f8fa;
--error:#b3261e;--warning:#8a5a00;--note:#0b5cad;--unknown:#7a3e9d;--good:#1a7f37;--none:#8c959f}
@media (prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#9aa4ae;--line:#30363d;--box:#161b22;
--error:#ff8a80;--warning:#e3b341;--note:#79b8ff;--unknown:#d2a8ff;--good:#56d364;--none:#6e7681}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:60rem;background:var(--back);color:var(--text);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}h3{font-size:1rem;margin:0}
code,pre{font:.875rem/1.5 ui-monospace,monospace;background:var(--box);overflow-wrap:anywhere}
pre{white-space:pre-wrap;padding:.5rem;border:1px solid var(--line);border-radius:4px;margin:.4rem 0}
section.finding{border:1px solid var(--line);border-left:6px solid var(--none);border-radius:4px;padding:.7rem 1rem;
margin:.7rem 0}
section.symptom{margin-left:1.2rem}
.error{border-left-color:var(--error)!important}.warning{border-left-color:var(--warning)!important}
.note{border-left-color:var(--note)!important}
.word{font-weight:700;text-transform:uppercase;font-size:.8rem;letter-spacing:.04em}
.error .word,.broken{color:var(--error)}.warning .word{color:var(--warning)}.note .word{color:var(--note)}
.unknown{color:var(--unknown)}.healthy{color:var(--good)}
p{margin:.4rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%;table-layout:fixed;font-size:.9rem}
th,td{border-bottom:1px solid var(--line);padding:.3rem .5rem .3rem 0;text-align:left;vertical-align:top}
th{color:var(--soft);font-weight:600}th:first-child{width:38%}
table.wide th:first-child{width:12%}table.wide th:nth-child(2){width:18%}
@media (max-width:40rem){table.wide thead{display:none}table.wide tr,table.wide td{display:block}
table.wide td{border:0;padding:.1rem 0}table.wide tr{border-bottom:1px solid var(--line);padding:.4rem 0}}
summary{cursor:pointer;color:var(--note)}
svg{display:block;width:100%;height:20px;margin:.3rem 0}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:.2rem 0;font-size:.9rem}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}
.c-error{fill:var(--error);background:var(--error)}.c-unknown{fill:var(--unknown);background:var(--unknown)}
.c-good{fill:var(--good);background:var(--good)}.c-none{fill:var(--none);background:var(--none)}
.c-warning{fill:var(--warning);background:var(--warning)}
)css";

// A page that opens without a network. Its content security policy makes sure that nothing in it runs or
// loads anything, even if some text were not escaped.
struct HtmlPage {
  std::string command;  // "scankit doctor"
  std::string title;    // escaped here, as the command is
  std::string verdict;  // a class of kHtmlStyle: "healthy", "broken", "unknown"
  std::string style;    // beside kHtmlStyle
  std::string body;     // HTML, below the title
};
std::string html_page(const HtmlPage& page);

// Pieces of a page. Parameters that are named html, and rows, are HTML already; all other text
// is escaped here.
namespace html {

std::string code(std::string_view text);
std::string paragraph(const std::string& html);
std::string heading(const std::string& text);
using Rows = std::vector<std::pair<std::string, std::string>>;
std::string table(const std::string& left, const std::string& right, const Rows& rows);
std::string folded(const std::string& title, const std::string& html);

// A part of a bar. `style` is a class of kHtmlStyle such as "c-error", `count` its share.
struct Part {
  std::string name;
  const char* style;
  std::size_t count;
};
// A bar of parts that add up to the whole. Each part is named with its number below the bar, because not
// everybody can tell colours apart. "" if all counts are 0.
std::string bar(const std::string& title, const std::vector<Part>& parts);

}  // namespace html

}  // namespace scankit
