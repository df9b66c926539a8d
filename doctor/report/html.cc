// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

// Both a light and a dark set of colours. A table of more than two columns becomes a list on a narrow screen.
constexpr const char* kHtmlStyle = R"css(
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
svg.plot{height:auto;max-width:100%;margin:.4rem 0 1rem}
svg.plot text{fill:var(--text);font:11px system-ui,sans-serif}
svg.plot line.grid{stroke:var(--line);stroke-width:1}
svg.plot polyline{fill:none;stroke:var(--note);stroke-width:2}
svg.plot polyline.dashed{stroke:var(--soft);stroke-dasharray:6 4}
)css";

std::string html(const Span& span) {
  return span.code ? "<code>" + xml_escaped(span.text) + "</code>" : xml_escaped(span.text);
}
std::string html(const Spans& spans) {
  std::string out;
  for (const Span& span : spans) out += html(span);
  return out;
}

std::string paragraph(const std::string& inner) { return "<p>" + inner + "</p>\n"; }
std::string command_block(const std::string& command) { return "<pre>" + xml_escaped(command) + "</pre>\n"; }

std::string folded_html(const std::string& title, const std::string& inner) {
  return "<details><summary>" + xml_escaped(title) + "</summary>\n" + inner + "</details>\n";
}

std::string html(const Table& table) {
  std::string out =
      std::string("<table") + (table.columns.size() > 2 ? " class=\"wide\"" : "") + "><thead><tr>";
  for (const std::string& column : table.columns) out += "<th scope=\"col\">" + xml_escaped(column) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const Spans& cell : row) out += "<td>" + html(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string evidence_html(const Problem& problem) {
  if (problem.evidence.empty()) return "";
  Table table{{say("fact"), say("value")}, {}};
  for (const Evidence& evidence : problem.evidence)
    table.rows.push_back({as_code(evidence.fact), as_code(evidence.value)});
  return folded_html(say("Evidence ({})", problem.evidence.size()), html(table));
}

// What follows from another problem is indented.
std::string html(const Problem& problem) {
  std::string out = "<section class=\"finding " + std::string(severity_word(problem.severity)) +
                    (problem.follows_from.empty() ? "" : " symptom") + "\">\n<h3><span class=\"word\">" +
                    xml_escaped(severity_name(problem.severity)) + "</span> " + xml_escaped(problem.title) +
                    " " + html(Span{problem.rule, true}) + "</h3>\n";
  if (!problem.follows_from.empty())
    out += paragraph("<span class=\"soft\">" + xml_escaped(say("because of")) + "</span> " +
                     html(Span{problem.follows_from, true}));
  out += paragraph(html(Span{problem.subject, true}));
  for (const std::string& sentence : problem.told) out += paragraph(xml_escaped(sentence));
  for (const Repair& repair : problem.repairs)
    out += paragraph(xml_escaped(say("Repair: {}", repair.sentence))) +
           (repair.command.empty() ? "" : command_block(repair.command));
  if (!problem.more.empty())
    out += paragraph(xml_escaped(say("More:")) + " " + html(Span{problem.more, true}));
  return out + evidence_html(problem) + "</section>\n";
}

std::string html(const std::vector<Block>& blocks, const Document& document);

std::string html(const PageSection& section, const Document& document) {
  if (section.shown == Shown::InMarkdown) return "";
  const std::string inner = html(section.blocks, document);
  if (inner.empty() || section.title.empty()) return inner;
  return section.fold == Fold::Folded ? folded_html(section.title, inner)
                                      : "<h2>" + xml_escaped(section.title) + "</h2>\n" + inner;
}

struct HtmlBlock {
  const Document& document;
  std::string operator()(const Paragraph& block) const { return paragraph(html(block.spans)); }
  std::string operator()(const CommandLine& block) const { return command_block(block.text); }
  std::string operator()(const Table& block) const { return html(block); }
  std::string operator()(const Problems& range) const {
    std::string out;
    for (std::size_t i = 0; i < range.count; ++i) out += html(document.problems[range.first + i]);
    return out;
  }
  std::string operator()(const Bar& block) const { return bar_svg(block); }
  std::string operator()(const Plot& block) const { return plot_svg(block); }
  std::string operator()(const BarChart& block) const { return chart_svg(block); }
  std::string operator()(const PageSection& block) const { return html(block, document); }
};

std::string html(const std::vector<Block>& blocks, const Document& document) {
  std::string out;
  for (const Block& block : blocks) out += std::visit(HtmlBlock{document}, block);
  return out;
}

// The class of the verdict's colour.
const char* verdict_class(Tone tone) {
  if (tone == Tone::Good) return "healthy";
  return tone == Tone::Error ? "broken" : "unknown";
}

// BCP 47 has a hyphen where a locale has an underscore: "zh-CN".
std::string language_tag() {
  std::string tag(spoken_language() == nullptr ? "en" : spoken_language()->code());
  std::ranges::replace(tag, '_', '-');
  return tag;
}

}  // namespace

// The content security policy allows the styles of the page and data URLs for images, and forbids
// scripts and every access to the network, even if some text were not escaped. The icon is an empty data URL, because a browser
// would ask a server for one.
std::string html_of(const Document& document) {
  const std::string command = xml_escaped("scankit " + document.command);
  const std::string title = xml_escaped(document.verdict);
  std::string body;
  for (const std::string& line : document.lead) body += paragraph(xml_escaped(line));
  body += html(document.blocks, document);
  return "<!DOCTYPE html>\n<html lang=\"" + xml_escaped(language_tag()) +
         "\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; img-src data:\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         command + ": " + title + "</title>\n<style>" + kHtmlStyle +
         "</style>\n</head>\n<body>\n<main>\n<p class=\"soft\">" + command + "</p>\n<h1 class=\"" +
         verdict_class(document.tone) + "\">" + title + "</h1>\n" + body + "</main>\n</body>\n</html>\n";
}

}  // namespace scankit::report
