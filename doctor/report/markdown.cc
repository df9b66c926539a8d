// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/audit.h"
#include "doctor/report/built_for.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

// A block that opens on a click; the caller writes the closing tag. The empty line lets Markdown
// follow the HTML.
std::string markdown_folded(const std::string& title) {
  return "<details><summary>" + xml_escaped(title) + "</summary>\n\n";
}
std::string columns(const std::string& left, const std::string& right) {
  return "| " + markdown_escaped(left) + " | " + markdown_escaped(right) + " |\n| --- | --- |\n";
}

void write_fixes(std::string& out, const Finding& finding, const Snapshot& snapshot) {
  for (const Fix& fix : finding.fixes) {
    const std::string command = fix_command(fix, snapshot);
    out += "- " + say("Repair: {}", markdown_escaped(fix_sentence(fix, snapshot))) +
           (command.empty() ? "" : ": " + markdown_code(command)) + "\n";
  }
  if (!finding.fixes.empty()) out += "\n";
}

void write_evidence(std::string& out, const Finding& finding) {
  if (finding.evidence.empty()) return;
  out += markdown_folded(say("Evidence ({})", finding.evidence.size()));
  out += columns(say("fact"), say("value"));
  for (const Evidence& evidence : finding.evidence)
    out += "| " + markdown_code(evidence.fact) + " | " + markdown_code(evidence.value) + " |\n";
  out += "\n</details>\n\n";
}

// A symptom gets a smaller heading and no repair: that of its cause removes it.
void write_finding(std::string& out, const Finding& finding, const Snapshot& snapshot) {
  const CauseInfo& cause = info(finding.cause);
  out += (finding.because_of ? "#### " : "### ") + severity_name(finding.severity()) + ": " +
         markdown_code(cause.slug) + "\n\n";
  out += "**" + markdown_escaped(said(cause.title)) + "**";
  if (finding.because_of)
    out += " (" + say("because of {}", markdown_code(info(*finding.because_of).slug)) + ")";
  out += "\n\n" + markdown_code(finding.subject) + "\n\n" + markdown_escaped(tr(finding.summary)) + "\n\n";
  if (!finding.because_of) write_fixes(out, finding, snapshot);
  out += say("More: {}", markdown_code("scankit explain " + std::string(cause.slug))) + "\n\n";
  write_evidence(out, finding);
}

void write_open(std::string& out, const Report& report) {
  if (std::ranges::none_of(report.outcomes, is_open)) return;
  out += "### " + say("Unknown") + "\n\n" + columns(say("question"), say("reason"));
  for (const Outcome& outcome : report.outcomes)
    if (is_open(outcome))
      out +=
          "| " + markdown_escaped(tr(outcome.question)) + " | " + markdown_escaped(tr(outcome.why)) + " |\n";
  out += "\n";
}

void write_not_checked(std::string& out, const Report& report) {
  std::string rows;
  for (const auto& [question, why] : not_checked(report))
    rows += "| " + markdown_escaped(question) + " | " + markdown_escaped(why) + " |\n";
  if (rows.empty()) return;
  out += markdown_folded(say("Not checked")) + columns(say("question"), say("reason")) + rows +
         "\n</details>\n\n";
}

void write_built_for(std::string& out, const Snapshot& snapshot) {
  const auto built_for = built_for_rows(snapshot);
  if (built_for.empty()) return;
  out += "### " + say("Built for") + "\n\n" + columns(say("file"), say("torch release"));
  for (const auto& [file, sentence] : built_for)
    out += "| " + markdown_code(file) + " | " + markdown_escaped(sentence) + " |\n";
  out += "\n";
}

}  // namespace

// For pasting into an issue: short at first sight, with everything else on a click.
std::string doctor_markdown(const Report& report) {
  std::string out = "## scankit " + std::string(command_of(report)) + ": " +
                    markdown_escaped(verdict_line(report)) + "\n\n" + markdown_escaped(counts_line(report)) +
                    "\n\n";
  for (const std::string& line : compared_lines(report)) out += markdown_escaped(line) + "\n\n";
  for (const std::string& line : target_lines(report.snapshot)) out += markdown_escaped(line) + "\n\n";
  if (!report.steps.empty()) out += columns(say("step"), say("result"));
  for (const auto& [name, ending] : step_rows(report))
    out += "| " + markdown_escaped(name) + " | " + markdown_escaped(ending) + " |\n";
  if (!report.steps.empty()) out += "\n";
  for (const Finding& finding : report.findings) write_finding(out, finding, report.snapshot);
  out += audit_markdown(report.snapshot);
  write_built_for(out, report.snapshot);
  write_open(out, report);
  write_not_checked(out, report);
  out += markdown_folded(say("Looked at")) + columns(say("item"), say("value"));
  for (const auto& [name, value] : versions(report.snapshot))
    out += "| " + markdown_escaped(name) + " | " + markdown_code(value) + " |\n";
  out += "\n</details>\n";
  if (const auto command = repair_command(report)) out += "\n" + markdown_code(*command) + "\n";
  return out;
}

}  // namespace scankit
