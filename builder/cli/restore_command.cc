// SPDX-License-Identifier: Apache-2.0
// `scankit restore`: undoes the last run of fix, or what is left of an interrupted one. The journals in the
// environment decide what is undone; fix/transaction.h says which of them are believed.
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <set>

#include "builder/cli/commands.h"
#include "builder/fix/install_target.h"
#include "builder/fix/transaction.h"
#include "doctor/base/columns.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/python.h"

namespace scankit::cli {
namespace {

// "back" for files that had an older version, "removed" for those that the fix had added.
void print_undone(const fix::Journal& journal) {
  print_line(say("undone: fix {} ({} {})", journal.id, journal.module, journal.version));
  for (const std::string& step : journal.steps) print_line("  " + in_column(say("step"), 9) + step);
  std::set<std::string> back;
  for (const fix::Operation& op : journal.operations)
    if (op.kind != fix::Operation::Kind::Place && back.insert(op.target).second)
      print_line("  " + in_column(say("restore"), 9) + op.target);
  for (const fix::Operation& op : journal.operations)
    if (back.count(op.target) == 0) print_line("  " + in_column(say("removed"), 9) + op.target);
}

// If the environment cannot be written now, choose_place() picks another directory. A fix whose journal is in
// the environment must not be reported as undone, or as not there, because of that.
std::optional<Error> left_in_environment(const Python& python, const fix::InstallTarget& place,
                                         const fix::StateFolder& chosen) {
  if (place.why.empty() || place.base == python.prefix) return std::nullopt;
  const fix::StateFolder own(python.prefix);
  const auto here = fix::last_run(chosen), there = fix::last_run(own);
  if ((here && !here->empty()) || !there || there->empty()) return std::nullopt;
  return Error{Errc::PermissionDenied,
               message("the last fix of this environment is stored in {}, which is not writable now: {}",
                       own.root(), place.why),
               message("run scankit restore again when it is writable")};
}

// Undoes every part of one run, the last one first. If one cannot be undone, the next restore continues
// there. `may_be_empty`: do not mention that a run has no committed journals.
int restore_run(const fix::StateFolder& state, const std::string& run, bool may_be_empty) {
  for (bool any = may_be_empty;; any = true) {
    const auto undone = fix::undo_last_of(state, run);
    if (undone) {
      print_undone(*undone);
      continue;
    }
    if (undone.error().code != Errc::NotFound) return report_error("restore", undone.error(), kExitFindings);
    if (!any) print_line(tr(undone.error().message));
    return kExitClean;
  }
}

// Whoever asks for a restore agrees to changes inside the environment. A journal that came with the
// environment may name any path outside, so such a path takes a second agreement.
bool agreed(const fix::StateFolder& state, const std::vector<fix::Journal>& journals, bool yes) {
  if (yes || fix::outside_of(state, journals).empty()) return true;
  for (const std::string& line : undo_lines(state, journals)) print_line(line);
  const Answer answer = ask(say("Proceed? [y/N]"));
  if (answer == Answer::Nobody) print_line(say("Nothing was changed. To run the plan: add --yes"));
  if (answer == Answer::No) print_line(say("Nothing was changed."));
  return answer == Answer::Yes;
}

// First finishes what was interrupted and undoes the rest of those runs; otherwise undoes the last run.
int restore(const fix::StateFolder& state, bool yes) {
  auto lock = fix::Lock::take(state.root());
  if (!lock) return report_error("restore", lock.error(), kExitFindings);
  const auto left = fix::interrupted(state), next = fix::next_to_undo(state);
  if (!left || !next) return report_error("restore", left ? next.error() : left.error(), kExitFindings);
  if (!agreed(state, *next, yes)) return kExitFindings;
  std::vector<std::string> lines;
  const auto recovered = fix::recover(state, lines);
  for (const std::string& line : lines) print_line(line);
  if (!recovered) return report_error("restore", recovered.error(), kExitFindings);
  if (left->empty()) {
    const auto last = fix::last_run(state);
    return last ? restore_run(state, *last, false) : report_error("restore", last.error(), kExitFindings);
  }
  std::set<std::string> runs;
  for (const fix::Journal& journal : *left) runs.insert(journal.run);
  // Undoing the interrupted one was what had been asked for, with the parts of it that were done before.
  for (const std::string& run : runs)
    if (const int status = restore_run(state, run, true); status != kExitClean) return status;
  return kExitClean;
}

}  // namespace

std::vector<std::string> undo_lines(const fix::StateFolder& state,
                                    const std::vector<fix::Journal>& journals) {
  std::vector<std::string> lines;
  const auto line = [&](const std::string& what, const std::string& path) {
    lines.push_back("  " + in_column(what, 9) + path);
  };
  for (const fix::Journal& journal : journals) {
    lines.push_back(say("to undo: fix {} ({} {})", journal.id, journal.module, journal.version));
    for (const fix::Operation& op : journal.operations)
      line(op.kind == fix::Operation::Kind::Place ? say("remove") : say("restore"), op.target);
  }
  const auto outside = fix::outside_of(state, journals);
  if (outside.empty()) return lines;
  lines.push_back(say("outside the environment {}:", path_dirname(state.root())));
  for (const std::string& path : outside) line("", path);
  return lines;
}

int run_restore(const RestoreOptions& options) {
  const auto host = make_real_host();
  const auto python = chosen_python(*host, options.python);
  if (!python)
    return report_error("restore", python.error(), options.python.empty() ? kExitFindings : kExitUsage);
  const auto probed = probes::probe_python(*host, *python);
  if (!probed.present()) return report_error("restore", {Errc::NotFound, tr(probed.note), ""}, kExitFindings);
  const auto place = fix::choose_place(*host, probed.value, options.target);
  if (!place) return report_error("restore", place.error(), kExitFindings);
  const fix::StateFolder state(place->base);
  if (auto elsewhere = left_in_environment(probed.value, *place, state))
    return report_error("restore", *elsewhere, kExitFindings);
  if (::access(state.root().c_str(), F_OK) != 0) {
    print_line(say("nothing to restore: scankit has changed nothing in this environment"));
    return kExitClean;
  }
  if (const auto foreign = probes::foreign_to_root(*host, state.root()))
    return report_error("restore", fix::foreign_journal(*foreign), kExitFindings);
  return restore(state, options.yes);
}

}  // namespace scankit::cli
