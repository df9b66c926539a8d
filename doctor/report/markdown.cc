// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

std::string markdown(const Spans& spans) {
  std::string out;
  for (const Span& span : spans) out += span.code ? markdown_code(span.text) : markdown_escaped(span.text);
  return out;
}

// A block that opens on a click. The empty line lets Markdown follow the HTML.
std::string details(const std::string& title, const std::string& inner) {
  return "<details><summary>" + xml_escaped(title) + "</summary>\n\n" + inner + "</details>\n\n";
}

std::string markdown(const Table& table) {
  std::string head, line, rows;
  for (const std::string& column : table.columns) {
    head += "| " + markdown_escaped(column) + " ";
    line += "| --- ";
  }
  for (const auto& row : table.rows) {
    for (const Spans& cell : row) {
      const std::string text = markdown(cell);
      rows += "| " + text + (text.empty() ? "" : " ");
    }
    rows += "|\n";
  }
  return head + "|\n" + line + "|\n" + rows + "\n";
}

std::string repairs_of(const Problem& problem) {
  std::string out;
  for (const Repair& repair : problem.repairs)
    out += "- " + say("Repair: {}", markdown_escaped(repair.sentence)) +
           (repair.command.empty() ? "" : ": " + markdown_code(repair.command)) + "\n";
  return out.empty() ? "" : out + "\n";
}

std::string evidence_details(const Problem& problem) {
  if (problem.evidence.empty()) return "";
  Table table{{say("fact"), say("value")}, {}};
  for (const Evidence& evidence : problem.evidence)
    table.rows.push_back({as_code(evidence.fact), as_code(evidence.value)});
  return details(say("Evidence ({})", problem.evidence.size()), markdown(table));
}

// What follows from another problem gets a smaller heading.
std::string markdown(const Problem& problem) {
  std::string out = (problem.follows_from.empty() ? "#### " : "##### ") + severity_name(problem.severity) +
                    ": " + markdown_code(problem.rule) + "\n\n**" + markdown_escaped(problem.title) + "**";
  if (!problem.follows_from.empty())
    out += " (" + say("because of {}", markdown_code(problem.follows_from)) + ")";
  out += "\n\n" + markdown_code(problem.subject) + "\n\n";
  for (const std::string& sentence : problem.told) out += markdown_escaped(sentence) + "\n\n";
  out += repairs_of(problem);
  if (!problem.more.empty()) out += say("More: {}", markdown_code(problem.more)) + "\n\n";
  return out + evidence_details(problem);
}

std::string markdown(const std::vector<Block>& blocks, const Document& document);

std::string markdown(const PageSection& section, const Document& document) {
  if (section.shown == Shown::OnPage) return "";
  const std::string inner = markdown(section.blocks, document);
  if (inner.empty() || section.title.empty()) return inner;
  return section.fold == Fold::Open ? "### " + markdown_escaped(section.title) + "\n\n" + inner
                                    : details(section.title, inner);
}

struct MarkdownBlock {
  const Document& document;
  std::string operator()(const Paragraph& paragraph) const { return markdown(paragraph.spans) + "\n\n"; }
  std::string operator()(const CommandLine& command) const { return markdown_code(command.text) + "\n\n"; }
  std::string operator()(const Table& table) const { return markdown(table); }
  std::string operator()(const Problems& range) const {
    std::string out;
    for (std::size_t i = 0; i < range.count; ++i) out += markdown(document.problems[range.first + i]);
    return out;
  }
  std::string operator()(const PageSection& section) const { return markdown(section, document); }
  // GitHub removes pictures that are part of the text.
  std::string operator()(const Bar&) const { return ""; }
  std::string operator()(const Plot&) const { return ""; }
  std::string operator()(const BarChart&) const { return ""; }
};

std::string markdown(const std::vector<Block>& blocks, const Document& document) {
  std::string out;
  for (const Block& block : blocks) out += std::visit(MarkdownBlock{document}, block);
  return out;
}

}  // namespace

std::string markdown_of(const Document& document) {
  std::string out =
      "## scankit " + markdown_escaped(document.command) + ": " + markdown_escaped(document.verdict) + "\n\n";
  for (const std::string& line : document.lead) out += markdown_escaped(line) + "\n\n";
  out += markdown(document.blocks, document);
  out.pop_back();  // the empty line behind the last block
  return out;
}

}  // namespace scankit::report
