// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/audit.h"
#include "doctor/report/dating.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"
#include "doctor/report/fold.h"
#include "doctor/report/html_style.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

std::string code(std::string_view text) { return "<code>" + xml_escaped(text) + "</code>"; }
std::string paragraph(const std::string& html) { return "<p>" + html + "</p>\n"; }

std::string heading(const std::string& text) { return "<h2>" + xml_escaped(text) + "</h2>\n"; }

using Rows = std::vector<std::pair<std::string, std::string>>;  // of HTML

std::string table(const std::string& left, const std::string& right, const Rows& rows) {
  std::string out = "<table><thead><tr><th scope=\"col\">" + xml_escaped(left) + "</th><th scope=\"col\">" +
                    xml_escaped(right) + "</th></tr></thead><tbody>\n";
  for (const auto& [name, value] : rows) out += "<tr><td>" + name + "</td><td>" + value + "</td></tr>\n";
  return out + "</tbody></table>\n";
}

std::string folded(const std::string& title, const std::string& body) {
  return "<details><summary>" + xml_escaped(title) + "</summary>\n" + body + "</details>\n";
}

struct Part {
  std::string name;
  const char* style;
  std::size_t count;
};

// One bar of parts that add up, each named with its number below: colour alone says nothing.
std::string bar(const std::string& title, const std::vector<Part>& parts) {
  std::size_t whole = 0, at = 0;
  for (const Part& part : parts) whole += part.count;
  if (whole == 0) return "";
  std::string svg = "<svg role=\"img\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\"><title>" +
                    xml_escaped(title) + "</title>";
  std::string legend = "<ul class=\"legend\">";
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    const std::size_t start = at * 1000 / whole, end = (at + part.count) * 1000 / whole;
    at += part.count;
    // A single missing name among hundreds is what matters: it stays visible.
    const std::size_t width = std::max<std::size_t>(end - start, 4);
    svg += "<rect class=\"" + std::string(part.style) + "\" x=\"" +
           std::to_string(std::min<std::size_t>(start, 1000 - width)) + "\" y=\"0\" width=\"" +
           std::to_string(width) + "\" height=\"20\"/>";
    legend += "<li><span class=\"key " + std::string(part.style) + "\"></span>" + xml_escaped(part.name) +
              ": " + std::to_string(part.count) + "</li>";
  }
  return paragraph(xml_escaped(title)) + svg + "</svg>\n" + legend + "</ul>\n";
}

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
              {say("found something milder"), "c-warning", milder},
              {say("unknown"), "c-unknown", n.unknown + n.crashed},
              {say("passed"), "c-good", n.passed},
              {say("not applicable"), "c-none", n.not_applicable}});
}

std::string symbol_bars(const Snapshot& snapshot) {
  std::string out;
  if (!snapshot.extensions.present()) return out;
  for (const Extension& file : snapshot.extensions.value)
    if (file.selected && file.resolved && file.undefined >= file.provided)
      out += bar(say("Names that {} needs", file.path),
                 {{say("provided by nobody"), "c-error", file.undefined - file.provided},
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
    out += paragraph(xml_escaped(say("Repair: {}", fix_sentence(fix))));
    if (const std::string command = fix_command(fix, snapshot); !command.empty())
      out += "<pre>" + xml_escaped(command) + "</pre>\n";
  }
  return out;
}

std::string section(const Finding& finding, const Snapshot& snapshot) {
  const CauseInfo& cause = info(finding.cause);
  const std::string severity(severity_word(finding.severity()));
  std::string out = "<section class=\"finding " + severity + (finding.because_of ? " symptom" : "") +
                    "\">\n<h3><span class=\"word\">" + xml_escaped(severity_name(finding.severity())) +
                    "</span> " + code(cause.slug) + " " + xml_escaped(said(cause.title)) + "</h3>\n";
  if (finding.because_of)
    out += paragraph("<span class=\"soft\">" + xml_escaped(say("because of")) + "</span> " +
                     code(info(*finding.because_of).slug));
  out += paragraph(code(finding.subject)) + paragraph(xml_escaped(finding.summary));
  if (!finding.because_of) out += fixes_of(finding, snapshot);
  Rows rows;
  for (const Evidence& evidence : finding.evidence)
    rows.emplace_back(code(evidence.fact), code(evidence.value));
  if (!rows.empty()) out += folded(say("Evidence ({})", rows.size()), table(say("fact"), say("value"), rows));
  return out + "</section>\n";
}

std::string questions(const Report& report) {
  std::string out;
  Rows open, skipped, moot, passed;
  for (const Outcome& outcome : report.outcomes) {
    const std::string question = xml_escaped(outcome.question);
    if (is_open(outcome)) open.emplace_back(question, xml_escaped(outcome.why));
    if (outcome.state == CheckState::Passed) passed.emplace_back(question, xml_escaped(say("yes")));
  }
  for (const auto& [question, why] : not_checked(report))
    skipped.emplace_back(xml_escaped(question), xml_escaped(why));
  for (const auto& [question, why] : not_applicable(report))
    moot.emplace_back(xml_escaped(question), xml_escaped(why));
  if (!open.empty()) out += heading(say("Unknown")) + table(say("question"), say("why"), open);
  out += heading(say("More"));
  const auto add = [&](const std::string& title, const std::string& right, const Rows& rows) {
    if (!rows.empty())
      out += folded(title + (" (" + std::to_string(rows.size()) + ")"), table(say("question"), right, rows));
  };
  add(say("Not checked"), say("why"), skipped);
  add(say("Does not apply"), say("why"), moot);
  add(say("Passed"), say("answer"), passed);
  return out;
}

}  // namespace

std::string doctor_html(const Report& report) {
  const std::string verdict(verdict_word(report.verdict));
  const std::string title = xml_escaped(verdict_line(report));
  // The policy makes sure that nothing in a report, were it ever not escaped, runs or loads anything.
  std::string out = "<!DOCTYPE html>\n<html lang=\"" +
                    xml_escaped(spoken_language() == nullptr ? "en" : spoken_language()->code()) +
                    "\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                    "'unsafe-inline'; img-src data:\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>scankit doctor: " +
                    title + "</title>\n<style>" + kHtmlStyle + "</style>\n</head>\n<body>\n<main>\n" +
                    "<p class=\"soft\">scankit doctor</p>\n<h1 class=\"" + verdict + "\">" + title +
                    "</h1>\n" + paragraph(xml_escaped(counts_line(report)));
  for (const std::string& line : target_lines(report.snapshot)) out += paragraph(xml_escaped(line));
  if (const auto command = repair_command(report)) out += "<pre>" + xml_escaped(*command) + "</pre>\n";
  out += checks_bar(report) + symbol_bars(report.snapshot) + audit_bar(report.snapshot);
  if (!report.findings.empty()) out += heading(say("Findings"));
  for (const Finding& finding : report.findings) out += section(finding, report.snapshot);
  out += audit_html(report.snapshot);
  Rows rows;
  for (const auto& [file, sentence] : dating_rows(report.snapshot))
    rows.emplace_back(code(file), xml_escaped(sentence));
  if (!rows.empty()) out += heading(say("Built for")) + table(say("file"), say("which torch"), rows);
  rows.clear();
  for (const auto& [name, value] : versions(report.snapshot))
    rows.emplace_back(xml_escaped(name), code(value));
  out += heading(say("Looked at")) + table(say("what"), say("value"), rows) + questions(report);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace scankit
