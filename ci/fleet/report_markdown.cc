// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/report.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"

// The report as GitHub-flavored Markdown, for the summary of a CI job. Everything from files is escaped: a
// node's message could contain markup.
namespace scankit::fleet {
namespace {

// A table of two columns; without rows it is left out altogether.
class Table {
 public:
  Table(const std::string& title, const std::string& left, const std::string& right)
      : head_("### " + title + "\n\n| " + left + " | " + right + " |\n| --- | --- |\n") {}
  void row(const std::string& left, const std::string& right) {
    rows_ += "| " + left + " | " + right + " |\n";
  }
  std::string text() const { return rows_.empty() ? "" : head_ + rows_ + "\n"; }

 private:
  std::string head_, rows_;
};

std::string markdown_nodes(const FleetReport& report, Verdict verdict, const std::string& title) {
  Table table(title, say("node"), say("reason"));
  for (const NodeEvent& node : report.nodes)
    if (node.verdict == verdict) table.row(markdown_code(node.name), markdown_escaped(tr(node.why)));
  return table.text();
}

std::string notes_of(const FleetReport& report) {
  Table table(say("Notes"), say("node"), say("note"));
  for (const NodeEvent& node : report.nodes)
    for (const Message& note : node.notes) table.row(markdown_code(node.name), markdown_escaped(tr(note)));
  return table.text();
}

}  // namespace

std::string markdown_report(const FleetReport& report) {
  std::string out = "## scankit fleet: " + markdown_escaped(verdict_line(report)) + "\n\n";
  if (!report.command.empty()) out += markdown_code(command_line(report.command)) + "\n\n";
  for (const Message& problem : report.problems) out += markdown_escaped(tr(problem)) + "\n\n";
  for (const Message& note : report.notes) out += markdown_escaped(tr(note)) + "\n\n";
  out += markdown_nodes(report, Verdict::Failed, say("Failed"));
  Table causes(say("Findings"), say("item"), say("nodes"));
  for (const CauseLine& line : report.causes)
    causes.row(markdown_code(line.cause.cause) + " " + markdown_escaped(line.cause.summary),
               markdown_escaped(node_names(line.nodes)));
  out += causes.text() + markdown_nodes(report, Verdict::Unknown, say("Unknown"));
  Table differences(say("Nodes differ (not a fault by itself)"), say("fact"), say("value"));
  for (const Difference& d : report.differences)
    differences.row(markdown_code(d.fact), markdown_escaped(difference_line(d)));
  Table outliers(say("Slower, faster or less accurate than nodes of the same kind"), say("node"),
                 say("item"));
  for (const Outlier& o : report.outliers)
    outliers.row(markdown_code(o.node), markdown_escaped(outlier_line(o)));
  Table strays(say("Files left out"), say("file"), say("reason"));
  for (const Stray& stray : report.strays)
    strays.row(markdown_code(stray.file), markdown_escaped(tr(stray.why)));
  return out + differences.text() + outliers.text() + notes_of(report) + strays.text();
}

}  // namespace scankit::fleet
