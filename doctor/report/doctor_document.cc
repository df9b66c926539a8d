// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/doctor_document.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/examined_files.h"
#include "doctor/report/fixes.h"
#include "doctor/report/text.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

PageSection section(std::string title, Block block, Fold fold = Fold::Open, Shown shown = Shown::Everywhere) {
  return {std::move(title), {std::move(block)}, fold, shown};
}

// How the checks ended. Checks for which the user gave no input are left out.
Bar checks_bar(const Report& report) {
  const Tally n = tally(report);
  const auto is_error = [](const Finding& finding) { return finding.severity() == Severity::Error; };
  std::size_t errors = 0, milder = 0;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Found)
      ++(std::ranges::any_of(outcome.findings, is_error) ? errors : milder);
  const auto asked = report.outcomes.size() -
                     static_cast<std::size_t>(std::ranges::count(report.outcomes, true, &Outcome::not_asked));
  return {say_n(asked, "{} check", "{} checks", asked),
          {{say("found an error"), Tone::Error, errors},
           {say("found a warning or note"), Tone::Warning, milder},
           {say("unknown"), Tone::Unknown, n.unknown + n.crashed},
           {say("passed"), Tone::Good, n.passed},
           {say("not applicable"), Tone::None, n.not_applicable}}};
}

// For each module under diagnosis, how many of its undefined symbols are provided.
void add_symbol_bars(std::vector<Block>& blocks, const Snapshot& snapshot) {
  if (!snapshot.extensions.present()) return;
  for (const Extension& file : snapshot.extensions.value)
    if (file.selected && file.resolved && file.undefined >= file.provided)
      blocks.push_back(Bar{say("Symbols that {} needs", path_basename(file.path)),
                           {{say("missing"), Tone::Error, file.undefined - file.provided},
                            {say("provided"), Tone::Good, file.provided}}});
}

void add_audit_bar(std::vector<Block>& blocks, const Snapshot& snapshot) {
  if (const auto table = audit_table(snapshot))
    blocks.push_back(
        Bar{table->title,
            {{say("would fail"), Tone::Error, table->of(AuditVerdict::Fails)},
             {say("unknown"), Tone::Unknown, table->of(AuditVerdict::Unknown)},
             {say("load"), Tone::Good, table->of(AuditVerdict::Loads)},
             {say("for another Python"), Tone::None, table->of(AuditVerdict::NotForThisPython)}}});
}

Problem problem_of(const Finding& finding, const Snapshot& snapshot) {
  const CauseInfo& cause = info(finding.cause);
  const std::string slug(cause.slug);
  Problem problem{.severity = finding.severity(),
                  .usual_severity = cause.severity,
                  .rule = slug,
                  .title = said(cause.title),
                  .help = said(cause.next_step),
                  .subject = finding.subject,
                  .module = finding.module,
                  .told = {tr(finding.summary)},
                  .evidence = finding.evidence,
                  .more = "scankit explain " + slug,
                  .place = finding.demanded_by};
  if (finding.because_of) {
    problem.follows_from = info(*finding.because_of).slug;
    return problem;
  }
  for (const Fix& fix : finding.fixes)
    problem.repairs.push_back({fix_sentence(fix, snapshot), fix_command(fix, snapshot)});
  return problem;
}

// A table of two columns; what `Right` makes of the second text is its cell.
template <class Right>
Table table_of(std::string left, std::string right, const Rows& rows, Right cell) {
  Table table{{std::move(left), std::move(right)}, {}};
  for (const auto& [name, value] : rows) table.rows.push_back({as_text(name), cell(value)});
  return table;
}

std::string reason(const AuditLine& line) {
  if (line.cause.empty() || line.why.empty()) return line.why;
  return line.cause + ": " + line.why;
}

// The files that need a look, or all others. The column about torch is left out if it would be empty.
Table audit_files(const AuditTable& audit, bool broken) {
  Table table{{say("verdict"), say("package"), say("extension"), say("reason")}, {}};
  if (audit.any_built_for) table.columns.push_back(say("built for torch"));
  for (const AuditLine& line : audit.lines) {
    if ((line.verdict == AuditVerdict::Fails || line.verdict == AuditVerdict::Unknown) != broken) continue;
    table.rows.push_back(
        {as_text(line.word), as_text(line.package), as_code(line.file), as_text(reason(line))});
    if (audit.any_built_for) table.rows.back().push_back(as_text(line.built_for));
  }
  if (broken)
    for (const Message& part : audit.not_read) {
      table.rows.push_back({as_text(say("not read")), {}, {}, as_text(tr(part))});
      if (audit.any_built_for) table.rows.back().emplace_back();
    }
  return table;
}

// A page lists every file; an issue gets the number of those that load, package by package.
void add_audit(std::vector<Block>& blocks, const Snapshot& snapshot) {
  if (const std::string note = audit_note(snapshot); !note.empty())
    blocks.push_back(Paragraph{as_text(note)});
  const auto audit = audit_table(snapshot);
  if (!audit) return;
  PageSection whole{say("Every extension"), {Paragraph{as_text(audit->title)}}};
  if (Table files = audit_files(*audit, true); !files.rows.empty()) whole.blocks.push_back(std::move(files));
  if (Table files = audit_files(*audit, false); !files.rows.empty())
    whole.blocks.push_back(section(say("Extensions that load, and those for another Python"),
                                   std::move(files), Fold::Folded, Shown::OnPage));
  Table loading{{say("package"), say("extensions")}, {}};
  for (const auto& [package, n] : audit->loading)
    loading.rows.push_back({as_text(package), as_text(std::to_string(n))});
  if (!loading.rows.empty())
    whole.blocks.push_back(
        section(say("Extensions that load"), std::move(loading), Fold::Folded, Shown::InMarkdown));
  blocks.push_back(std::move(whole));
}

void add_built_for(std::vector<Block>& blocks, const Snapshot& snapshot) {
  Table table{{say("file"), say("torch release")}, {}};
  for (const auto& [file, sentence] : built_for_rows(snapshot))
    table.rows.push_back({as_code(file), as_text(sentence)});
  if (!table.rows.empty()) blocks.push_back(section(say("Built for"), std::move(table)));
}

// The checks without a finding, by what became of them. Open questions are shown at once, the others on a click.
void add_questions(std::vector<Block>& blocks, const Report& report) {
  Rows open, passed;
  for (const Outcome& outcome : report.outcomes) {
    if (is_open(outcome)) open.emplace_back(tr(outcome.question), tr(outcome.why));
    if (outcome.state == CheckState::Passed) passed.emplace_back(tr(outcome.question), say("yes"));
  }
  const auto add = [&](std::string title, std::string right, const Rows& rows, Fold fold, Shown shown) {
    if (rows.empty()) return;
    if (fold == Fold::Folded) title += " (" + std::to_string(rows.size()) + ")";
    blocks.push_back(
        section(std::move(title), table_of(say("question"), std::move(right), rows, as_text), fold, shown));
  };
  add(say("Unknown"), say("reason"), open, Fold::Open, Shown::Everywhere);
  add(say("Not checked"), say("reason"), not_checked(report), Fold::Folded, Shown::Everywhere);
  add(say("Does not apply"), say("reason"), not_applicable(report), Fold::Folded, Shown::OnPage);
  add(say("Passed"), say("verdict"), passed, Fold::Folded, Shown::OnPage);
}

std::vector<Block> blocks_of(const Report& report) {
  std::vector<Block> blocks;
  if (const auto repair = repair_command(report)) blocks.push_back(CommandLine{*repair});
  blocks.push_back(checks_bar(report));
  add_symbol_bars(blocks, report.snapshot);
  add_audit_bar(blocks, report.snapshot);
  if (!report.steps.empty())
    blocks.push_back(section(say("Steps"), table_of(say("step"), say("result"), step_rows(report), as_text)));
  if (!report.findings.empty())
    blocks.push_back(section(say("Findings"), Problems{0, report.findings.size()}));
  if (report.snapshot.command)
    blocks.push_back(section(say("Command"), table_of(say("item"), say("value"),
                                                      command_rows(*report.snapshot.command), as_code)));
  add_audit(blocks, report.snapshot);
  add_built_for(blocks, report.snapshot);
  blocks.push_back(section(say("Looked at"),
                           table_of(say("item"), say("value"), versions(report.snapshot), as_code),
                           Fold::FoldedInMarkdown));
  add_questions(blocks, report);
  return blocks;
}

Tone tone_of(Verdict verdict) {
  if (verdict == Verdict::Healthy) return Tone::Good;
  return verdict == Verdict::Broken ? Tone::Error : Tone::Unknown;
}

}  // namespace

Document doctor_document(const Report& report, int exit_status) {
  const Python& python = report.snapshot.python.value;
  Document document{.command = std::string(command_of(report)),
                    .verdict_word = std::string(verdict_word(report)),
                    .verdict = verdict_line(report),
                    .tone = tone_of(report.verdict),
                    .exit_status = exit_status,
                    .lead = {counts_line(report)},
                    .facts = versions(report.snapshot),
                    .blocks = blocks_of(report),
                    .suites = doctor_suites(report),
                    .metrics = doctor_metrics(report, exit_status),
                    .environment = python.requested.empty() ? python.executable : python.requested,
                    .tool_version = report.snapshot.tool_version};
  for (const Finding& finding : report.findings)
    document.problems.push_back(problem_of(finding, report.snapshot));
  for (const std::string& line : compared_lines(report)) {
    document.lead.push_back(line);
    document.facts.emplace_back(say("target"), line);
  }
  for (const std::string& line : target_lines(report.snapshot)) document.lead.push_back(line);
  if (const auto table = audit_table(report.snapshot))
    document.notices.emplace_back(say("every extension"), table->title);
  for (const Outcome& outcome : report.outcomes)
    if (is_open(outcome))
      document.open.push_back({.check = outcome.check,
                               .question = tr(outcome.question),
                               .why = tr(outcome.why),
                               .could_hide_error = outcome.could_hide_error,
                               .crashed = outcome.state == CheckState::Crashed});
  return document;
}

Views doctor_views(const Report& report, int exit_status) {
  return {.text = [&report](const TextStyle& style) { return doctor_text(report, style); },
          .json = [&report] { return doctor_json(report); },
          .document = [&report, exit_status] { return doctor_document(report, exit_status); }};
}

namespace {
using Json = nlohmann::ordered_json;

// "SIGSEGV"; the numbers are Linux's. sigabbrev_np(3) needs a newer glibc than some build hosts have.
std::string signal_name(int number) {
  constexpr std::pair<int, const char*> kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
      {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
      {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
      {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const auto& [known, name] : kNames)
    if (known == number) return name;
  return "";
}

Json place_json(const std::optional<CommandPlace>& at) {
  if (!at) return nullptr;
  return {{"importing", at->importing}, {"module", or_null(at->module)},     {"file", at->file},
          {"line", at->line},           {"function", or_null(at->function)}, {"source", or_null(at->source)}};
}

std::string place_in_words(const CommandPlace& at) {
  const std::string where = at.file + ":" + std::to_string(at.line);
  if (at.importing && !at.module.empty()) return say("importing {} at {}", at.module, where);
  if (at.importing) return say("importing at {}", where);
  return at.function.empty() ? where : say("in {} at {}", at.function, where);
}

}  // namespace

Json command_json(const RanCommand& command) {
  Json interpreters = Json::array();
  for (const CommandInterpreter& each : command.interpreters)
    interpreters.push_back({{"python", each.path},
                            {"directory", or_null(each.directory)},
                            {"container", each.other_root},
                            {"last_modules", each.modules}});
  return {{"argv", command.words},
          {"directory", command.directory},
          {"exit_status", command.exit_status ? Json(*command.exit_status) : Json(nullptr)},
          {"signal", command.signal == 0 ? Json(nullptr) : Json(command.signal)},
          {"signal_name", or_null(signal_name(command.signal))},
          {"end", english(command.end)},
          {"duration_ms", command.duration_ms},
          {"output", {{"bytes", command.output_bytes}, {"cut", command.output_cut}}},
          {"memory_kills", command.memory_kills},
          {"memory_kills_of_machine", command.memory_kills_of_machine},
          {"crashed_in", or_null(command.crashed_in)},
          {"at", place_json(command.at)},
          {"examined", or_null(command.examined)},
          {"interpreters", std::move(interpreters)},
          {"programs", command.programs}};
}

std::vector<std::pair<std::string, std::string>> command_rows(const RanCommand& command) {
  std::vector<std::pair<std::string, std::string>> rows{
      {say("command"), shell_line(command.words)},
      {say("directory"), command.directory},
      {say("end"), tr(command.end)},
      {say("duration"), say("{:.1f} s", static_cast<double>(command.duration_ms) / 1000.0)}};
  if (command.at) rows.emplace_back(say("Python"), place_in_words(*command.at));
  for (const CommandInterpreter& each : command.interpreters)
    rows.emplace_back(say("interpreter"), each.path);
  if (command.output_cut)
    rows.emplace_back(say("output"),
                      say("{} bytes, of which the first error and the end were kept", command.output_bytes));
  return rows;
}

}  // namespace scankit::report
