// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/text.h"

#include <algorithm>
#include <cctype>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/examined_files.h"
#include "doctor/report/fixes.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

constexpr std::size_t kFewLines = 4;  // of evidence, without --verbose

std::string label(std::string name) { return in_column(std::move(name), 8); }

// Prints why a fact is missing and returns true; false if it is there.
template <class T>
bool said_why_not(Page& page, const std::string& name, const Probed<T>& fact) {
  if (fact.present()) return false;
  page.line(2, label(name) + tr(why_missing(fact)));
  return true;
}

std::string gpu_in_words(const Gpu& gpu, const Snapshot& snapshot) {
  std::string text = std::to_string(gpu.index) + ": " + gpu.name;
  if (!gpu.sm.empty()) text += ", sm_" + gpu.sm;
  if (snapshot.driver.present()) text += ", " + say("driver {}", snapshot.driver.value.version);
  return text;
}

std::string module_in_words(const Extension& file) {
  std::string text = file.path;
  if (!file.selected) text = say("{} ({})", text, say("not used: {}", tr(file.why_not_selected)));
  if (file.resolved)
    text = say("{} ({})", text,
               say_n(file.undefined, "{} of {} undefined symbol resolved",
                     "{} of {} undefined symbols resolved", file.provided, file.undefined));
  return text;
}

// --verbose: a line for each thing that the driver told, then what is unusual about them.
void print_gpu_details(Page& page, const Gpu& gpu) {
  const std::vector<GpuRow> rows = gpu_rows(gpu);
  if (rows.empty()) page.line(10, say("its driver was not asked for more, or did not answer"));
  std::size_t width = 0;
  for (const GpuRow& row : rows) width = std::max(width, columns_of(row.label));
  for (const GpuRow& row : rows) page.line(10, in_column(row.label, width + 2) + row.value);
  for (const std::string& line : unusual_of(gpu)) page.line(10, line);
}

// The modules under diagnosis without those that are Python packages: these are printed as packages.
std::vector<std::string> compiled_names(const Snapshot& snapshot) {
  std::vector<std::string> names = snapshot.modules;
  for (const AskedPackage& package : snapshot.packages_asked) std::erase(names, package.name);
  return names;
}

// The first block: what was looked at. It stops where the rest would only repeat why the Python
// cannot be used.
void print_facts(Page& page, const Snapshot& snapshot, const std::vector<std::string>& compared) {
  for (const std::string& line : compared) page.line(2, line);
  for (const std::string& line : target_lines(snapshot)) page.line(2, line);
  // A reason that several facts share is printed once.
  const bool unusable = snapshot.broken_environment.has_value() ||
                        (!snapshot.python.present() && snapshot.torch.note == snapshot.python.note);
  if (!said_why_not(page, say("Python"), snapshot.python))
    page.verbatim(2, label(say("Python")) + python_in_words(snapshot.python.value));
  if (const std::string gil = gil_in_words(snapshot); !gil.empty()) page.line(2, label("GIL") + gil);
  if (!unusable && !said_why_not(page, say("torch"), snapshot.torch))
    page.line(2, label(say("torch")) + torch_in_words(snapshot.torch.value));
  if (!said_why_not(page, say("GPU"), snapshot.gpus))
    for (const Gpu& gpu : snapshot.gpus.value) {
      page.line(2, label(say("GPU")) + gpu_in_words(gpu, snapshot));
      if (page.verbose()) print_gpu_details(page, gpu);
    }
  if (unusable || said_why_not(page, say("module"), snapshot.extensions)) return;
  if (snapshot.extensions.value.empty() && !snapshot.extensions.note.empty())
    page.line(2, label(say("module")) + tr(snapshot.extensions.note));
  else if (const auto absent = compiled_names(snapshot); snapshot.extensions.value.empty() && !absent.empty())
    page.line(2, label(say("module")) + say_n(absent.size(), "not installed: {}",
                                              "none of these is installed: {}", join(absent)));
  for (const AskedPackage& package : snapshot.packages_asked)
    page.line(2, label(say("package")) + package.path);
  const std::string& torch = snapshot.torch.value.version;
  for (const Extension& file : snapshot.extensions.value) {
    if (!file.selected && !page.verbose()) continue;
    page.line(2, label(say("module")) + module_in_words(file));
    const std::string made_for = built_for_sentence(file.built_for, torch);
    if (!made_for.empty()) page.line(10, made_for);
  }
  for (const BuiltFor& more : snapshot.built_for)
    if (more.together > 1) page.line(10, together_sentence(more, torch));
}

// Whether the evidence adds anything to the sentence of the finding. Very short values are numbers or
// flags, which say little by themselves. --verbose shows all of it.
bool is_new(const Page& page, const Finding& finding, const Evidence& evidence) {
  return page.verbose() || (evidence.value.size() > 3 && finding.subject != evidence.value &&
                            tr(finding.summary).find(evidence.value) == std::string::npos);
}

// A name for a fact: the last word of its JSON pointer, or for an entry of a list the name of the list.
std::string fact_name(std::string fact) {
  for (auto slash = fact.rfind('/'); slash != std::string::npos && slash > 0; slash = fact.rfind('/')) {
    if (fact.find_last_not_of("0123456789") != slash) break;
    fact.erase(slash);
  }
  return fact.substr(fact.rfind('/') + 1);
}

void print_evidence(Page& page, std::size_t indent, const Finding& finding) {
  std::size_t shown = 0, held_back = 0;
  for (const Evidence& evidence : finding.evidence) {
    if (!is_new(page, finding, evidence)) continue;
    if (!page.verbose() && shown == kFewLines) {
      ++held_back;
      continue;
    }
    ++shown;
    const std::string name = page.verbose() ? evidence.fact : fact_name(evidence.fact);
    page.line(indent, name + ": " + (evidence.value.empty() ? "\"\"" : evidence.value));
  }
  if (held_back > 0)
    page.line(indent, say_n(held_back, "and {} more: -v lists it", "and {} more: -v lists them", held_back));
}

// Each fix as a sentence with its command below. The command that is the last line of the page is not
// repeated here.
void print_fixes(Page& page, std::size_t indent, const Finding& finding, const Report& report) {
  const auto last_line = repair_command(report);
  for (const Fix& fix : finding.fixes) {
    page.verbatim(indent, say("repair: {}", fix_sentence(fix, report.snapshot)));
    const std::string command = fix_command(fix, report.snapshot);
    if (!command.empty() && command != last_line) page.verbatim(indent + 2, command);
  }
}

// Whether this is the first finding of its cause; the hint to `scankit explain` is printed once
// for each cause.
bool first_of_its_cause(const Report& report, const Finding& finding) {
  const auto first = std::ranges::find(report.findings, finding.cause, &Finding::cause);
  return first == report.findings.end() || &*first == &finding;
}

void print_finding(Page& page, const Finding& finding, const Report& report) {
  const std::size_t indent = finding.because_of ? 4 : 0;
  page.gap();
  page.marked(indent, mark_of(finding.severity()), std::string(info(finding.cause).slug),
              say(": {}", said(info(finding.cause).title)));
  if (finding.because_of) page.line(indent + 2, say("because of {}", info(*finding.because_of).slug));
  page.line(indent + 2, finding.subject);
  page.line(indent + 2, tr(finding.summary));
  const bool wanted = page.verbose() || finding.severity() == Severity::Error;
  if (wanted) print_evidence(page, indent + 4, finding);
  if (!finding.because_of) print_fixes(page, indent + 2, finding, report);  // else its cause's is the repair
  if (first_of_its_cause(report, finding))
    page.verbatim(indent + 2, say("explain: {}", "scankit explain " + std::string(info(finding.cause).slug)));
}

// A variant is another way to import the same module.
std::string what_was_tried(const Observation& seen) {
  if (seen.variant == "torch-first") return say("import {} (after torch)", seen.module);
  return say("import {}", seen.module);
}

// The words of the snapshot, translated.
std::string outcome_in_words(const std::string& outcome) {
  if (outcome == "ok") return say("ok");
  if (outcome == "error") return say("error");
  if (outcome == "crashed") return say("crashed");
  if (outcome == "timeout") return say("timeout");
  return outcome == "not-run" ? say("not-run") : outcome;
}

std::string in_words(const Observation& seen) {
  if (seen.variant == "start") return tr(seen.message);
  std::vector<std::string> parts = {outcome_in_words(seen.outcome)};
  if (seen.outcome == "not-run") parts.push_back(tr(seen.why_not_run));
  std::string exception = seen.exception;
  if (!seen.message.empty())
    exception = exception.empty() ? tr(seen.message) : exception + ": " + tr(seen.message);
  if (seen.outcome != "not-run") parts.insert(parts.end(), {exception, seen.file});
  return say("{}: {}", what_was_tried(seen), said_list(parts));
}

// Whether an observation is worth a line without --verbose: not if a later variant decides, and not if it
// is "No module named" of a module that nobody misses.
bool worth_a_line(const Report& report, const Observation& seen) {
  const auto& all = report.snapshot.observations.value;
  if (seen.variant != "bare") return true;
  const bool superseded = std::ranges::any_of(all, [&](const Observation& other) {
    return other.module == seen.module && other.variant == "torch-first";
  });
  const bool missed = std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return finding.module == seen.module && finding.severity() == Severity::Error;
  });
  return !superseded && (missed || seen.exception != "ModuleNotFoundError");
}

void print_observed(Page& page, const Report& report) {
  if (!report.snapshot.observations.present()) return;
  bool first = true;
  for (const Observation& seen : report.snapshot.observations.value) {
    if (!page.verbose() && !worth_a_line(report, seen)) continue;
    if (first) page.gap().line(0, say("Observed"));
    first = false;
    page.line(2, in_words(seen));
  }
}

// Lines that several checks share are printed once, with the checks below.
class Grouped {
 public:
  void add(const std::string& why, const std::string& check) {
    const auto same = std::ranges::find(lines_, why, &Line::why);
    if (same == lines_.end())
      lines_.push_back({why, {check}});
    else
      same->checks.push_back(check);
  }
  struct Line {
    std::string why;
    std::vector<std::string> checks;
  };
  const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
};

// One unreadable file may leave a dozen questions open. Without --verbose the first few show what
// kind they are.
void print_questions(Page& page, const std::vector<std::string>& questions) {
  constexpr std::size_t kFewQuestions = 3;
  const bool all = page.verbose() || questions.size() <= kFewQuestions + 1;
  const std::size_t shown = all ? questions.size() : kFewQuestions;
  for (std::size_t i = 0; i < shown; ++i) page.line(2, questions[i]);
  if (const std::size_t n = questions.size() - shown; n > 0)
    page.line(2, say_n(n, "and {} more question: -v lists it", "and {} more questions: -v lists them", n));
}

// One block for each reason. An open question that could hide nothing is told apart from one that could.
void print_open_questions(Page& page, const Report& report) {
  Grouped grouped;
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.why.empty() || outcome.state == CheckState::NotApplicable ||
        outcome.state == CheckState::Passed)
      continue;
    const bool crashed = outcome.state == CheckState::Crashed;
    const std::string why = crashed ? say("the check itself failed: {}", tr(outcome.why)) : tr(outcome.why);
    grouped.add(outcome.could_hide_error ? why : say("{} (the observed imports hide no error here)", why),
                tr(outcome.question));
  }
  for (const auto& [why, questions] : grouped.lines()) {
    page.gap().marked(0, kUnknown, "", why);
    print_questions(page, questions);
  }
}

void print_grouped(Page& page, const std::string& title, const Grouped& grouped) {
  if (grouped.lines().empty()) return;
  page.gap().line(0, title);
  for (const auto& [why, checks] : grouped.lines()) {
    page.line(2, why);
    if (!page.verbose()) continue;
    for (const std::string& check : checks) page.line(4, check);
  }
}

// What was left out although it could be wrong is always printed; what has nothing to look at only
// with --verbose.
void print_not_checked(Page& page, const Report& report) {
  Grouped left_out, moot;
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.state == CheckState::NotApplicable)
      (outcome.left_out ? left_out : moot).add(tr(outcome.why), outcome.check);
    for (const Message& part : outcome.not_checked) left_out.add(tr(part), outcome.check);
  }
  print_grouped(page, say("Not checked"), left_out);
  if (page.verbose()) print_grouped(page, say("Does not apply"), moot);
}

void print_passed(Page& page, const Report& report) {
  page.gap();
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Passed) page.marked(0, kGood, "", tr(outcome.question));
}

// What a check says although nothing is wrong: a warning of the log that may be ignored.
void print_remarks(Page& page, const Report& report) {
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Passed && !outcome.why.empty())
      page.gap().marked(0, kNote, "", tr(outcome.why));
}

void print_verdict(Page& page, const Report& report) {
  const Mark& mark = report.verdict == Verdict::Healthy  ? kGood
                     : report.verdict == Verdict::Broken ? kError
                     : report.verdict == Verdict::Empty  ? kWarning
                                                         : kUnknown;
  page.marked(0, mark, verdict_line(report), say(". {}", counts_line(report)));
}

bool ends_in_utf8(const std::string& text) {
  const std::string value = lowered(text);
  return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
}

}  // namespace

bool locale_is_utf8(const Environment& variables) {
  // The first of these variables that is set and not empty decides (POSIX, Environment Variables).
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const auto value = variables(name); value && !value->empty()) return ends_in_utf8(*value);
  return false;
}

bool wants_ascii(const Environment& variables) {
  return !locale_is_utf8(variables) && spoken_language() == nullptr;
}

bool wants_color(std::string_view choice, bool is_terminal, const Environment& variables) {
  if (choice != "auto") return choice == "always";
  // NO_COLOR counts if it is not empty (no-color.org).
  const auto no_color = variables("NO_COLOR"), term = variables("TERM");
  return is_terminal && !(no_color && !no_color->empty()) && !term.value_or("").empty() && term != "dumb";
}

namespace {

void print_body(Page& page, const Report& report) {
  page.line(0, say("Looked at"));
  print_facts(page, report.snapshot, compared_lines(report));
  if (!report.steps.empty()) page.gap().line(0, say("Steps"));
  for (const auto& [name, ending] : step_rows(report)) page.line(2, in_column(name, 10) + ending);
  print_observed(page, report);
  if (const auto table = audit_lines(report.snapshot, page.verbose()); !table.empty()) {
    page.gap();
    for (const std::string& row : table) page.verbatim(0, row);  // in columns
  }
  for (const Finding& finding : report.findings) print_finding(page, finding, report);
  print_open_questions(page, report);
  print_remarks(page, report);
  print_not_checked(page, report);
  if (page.verbose()) print_passed(page, report);
}

}  // namespace

std::string doctor_text(const Report& report, const TextStyle& style) {
  Page page(style);
  if (!style.quiet) {
    print_body(page, report);
    // The legend comes after the body, because it depends on which paths the body repeats.
    page.legend(legend_of(report.snapshot)).gap();
  }
  print_verdict(page, report);
  if (const auto command = repair_command(report)) {
    if (!style.quiet) page.gap();
    page.strong(*command);
  }
  return page.take();
}

}  // namespace scankit::report
