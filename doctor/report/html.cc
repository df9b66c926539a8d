// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/report/audit.h"
#include "doctor/report/built_for.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"
#include "doctor/report/html_page.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

using html::bar;
using html::code;
using html::folded;
using html::heading;
using html::paragraph;
using html::Rows;
using html::table;

// How the checks ended, as a bar. Checks for which the user gave no input are left out.
std::string checks_bar(const Report& report) {
  const Tally n = tally(report);
  const auto is_error = [](const Finding& finding) { return finding.severity() == Severity::Error; };
  std::size_t errors = 0, milder = 0;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Found)
      ++(std::ranges::any_of(outcome.findings, is_error) ? errors : milder);
  const auto asked = report.outcomes.size() -
                     static_cast<std::size_t>(std::ranges::count(report.outcomes, true, &Outcome::not_asked));
  return bar(say_n(asked, "{} check", "{} checks", asked),
             {{say("found an error"), "c-error", errors},
              {say("found a warning or note"), "c-warning", milder},
              {say("unknown"), "c-unknown", n.unknown + n.crashed},
              {say("passed"), "c-good", n.passed},
              {say("not applicable"), "c-none", n.not_applicable}});
}

// For each module under diagnosis, how many of its undefined symbols are provided.
std::string symbol_bars(const Snapshot& snapshot) {
  std::string out;
  if (!snapshot.extensions.present()) return out;
  for (const Extension& file : snapshot.extensions.value)
    if (file.selected && file.resolved && file.undefined >= file.provided)
      out += bar(say("Symbols that {} needs", path_basename(file.path)),
                 {{say("missing"), "c-error", file.undefined - file.provided},
                  {say("provided"), "c-good", file.provided}});
  return out;
}

std::string audit_bar(const Snapshot& snapshot) {
  const auto table = audit_table(snapshot);
  if (!table) return "";
  return bar(table->title,
             {{say("would fail"), "c-error", table->of(AuditVerdict::Fails)},
              {say("unknown"), "c-unknown", table->of(AuditVerdict::Unknown)},
              {say("load"), "c-good", table->of(AuditVerdict::Loads)},
              {say("for another Python"), "c-none", table->of(AuditVerdict::NotForThisPython)}});
}

std::string fixes_of(const Finding& finding, const Snapshot& snapshot) {
  std::string out;
  for (const Fix& fix : finding.fixes) {
    out += paragraph(xml_escaped(say("Repair: {}", fix_sentence(fix, snapshot))));
    if (const std::string command = fix_command(fix, snapshot); !command.empty())
      out += "<pre>" + xml_escaped(command) + "</pre>\n";
  }
  return out;
}

// One finding. Symptoms are indented and have no repair of their own: that of their cause removes them.
std::string section(const Finding& finding, const Snapshot& snapshot) {
  const CauseInfo& cause = info(finding.cause);
  const std::string severity(severity_word(finding.severity()));
  std::string out = "<section class=\"finding " + severity + (finding.because_of ? " symptom" : "") +
                    "\">\n<h3><span class=\"word\">" + xml_escaped(severity_name(finding.severity())) +
                    "</span> " + xml_escaped(said(cause.title)) + " " + code(cause.slug) + "</h3>\n";
  if (finding.because_of)
    out += paragraph("<span class=\"soft\">" + xml_escaped(say("because of")) + "</span> " +
                     code(info(*finding.because_of).slug));
  out += paragraph(code(finding.subject)) + paragraph(xml_escaped(tr(finding.summary)));
  if (!finding.because_of) out += fixes_of(finding, snapshot);
  out += paragraph(xml_escaped(say("More:")) + " " + code("scankit explain " + std::string(cause.slug)));
  Rows rows;
  for (const Evidence& evidence : finding.evidence)
    rows.emplace_back(code(evidence.fact), code(evidence.value));
  if (!rows.empty()) out += folded(say("Evidence ({})", rows.size()), table(say("fact"), say("value"), rows));
  return out + "</section>\n";
}

// The checks without a finding, by what became of them. Open questions are shown at once, the
// others on a click.
std::string questions(const Report& report) {
  std::string out;
  Rows open, skipped, moot, passed;
  for (const Outcome& outcome : report.outcomes) {
    const std::string question = xml_escaped(tr(outcome.question));
    if (is_open(outcome)) open.emplace_back(question, xml_escaped(tr(outcome.why)));
    if (outcome.state == CheckState::Passed) passed.emplace_back(question, xml_escaped(say("yes")));
  }
  for (const auto& [question, why] : not_checked(report))
    skipped.emplace_back(xml_escaped(question), xml_escaped(why));
  for (const auto& [question, why] : not_applicable(report))
    moot.emplace_back(xml_escaped(question), xml_escaped(why));
  if (!open.empty()) out += heading(say("Unknown")) + table(say("question"), say("reason"), open);
  out += heading(say("More"));
  const auto add = [&](const std::string& title, const std::string& right, const Rows& rows) {
    if (!rows.empty())
      out += folded(title + (" (" + std::to_string(rows.size()) + ")"), table(say("question"), right, rows));
  };
  add(say("Not checked"), say("reason"), skipped);
  add(say("Does not apply"), say("reason"), moot);
  add(say("Passed"), say("verdict"), passed);
  return out;
}

}  // namespace

std::string doctor_html(const Report& report) {
  std::string out = paragraph(xml_escaped(counts_line(report)));
  for (const std::string& line : compared_lines(report)) out += paragraph(xml_escaped(line));
  for (const std::string& line : target_lines(report.snapshot)) out += paragraph(xml_escaped(line));
  if (const auto repair = repair_command(report)) out += "<pre>" + xml_escaped(*repair) + "</pre>\n";
  out += checks_bar(report) + symbol_bars(report.snapshot) + audit_bar(report.snapshot);
  Rows steps;
  for (const auto& [name, ending] : step_rows(report))
    steps.emplace_back(xml_escaped(name), xml_escaped(ending));
  if (!steps.empty()) out += heading(say("Steps")) + table(say("step"), say("result"), steps);
  if (!report.findings.empty()) out += heading(say("Findings"));
  for (const Finding& finding : report.findings) out += section(finding, report.snapshot);
  out += audit_html(report.snapshot);
  Rows rows;
  for (const auto& [file, sentence] : built_for_rows(report.snapshot))
    rows.emplace_back(code(file), xml_escaped(sentence));
  if (!rows.empty()) out += heading(say("Built for")) + table(say("file"), say("torch release"), rows);
  rows.clear();
  for (const auto& [name, value] : versions(report.snapshot))
    rows.emplace_back(xml_escaped(name), code(value));
  out += heading(say("Looked at")) + table(say("item"), say("value"), rows) + questions(report);
  // The style sheet has no colour for an empty verdict.
  const Verdict shade = report.verdict == Verdict::Empty ? Verdict::Unknown : report.verdict;
  return html_page({"scankit " + std::string(command_of(report)), verdict_line(report),
                    std::string(verdict_word(shade)), "", out});
}

}  // namespace scankit
