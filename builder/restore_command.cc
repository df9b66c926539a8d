// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <set>

#include "builder/commands.h"
#include "builder/install/lock.h"
#include "builder/install/place.h"
#include "builder/install/transaction.h"
#include "doctor/base/column.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/probes/python.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

void print_undone(const Journal& journal) {
  print_line(say("undone: fix {} ({} {})", journal.id, journal.module, journal.version));
  for (const std::string& step : journal.steps) print_line("  " + in_column(say("step"), 9) + retold(step));
  std::set<std::string> back;
  for (const Operation& op : journal.operations)
    if (op.kind != Operation::Kind::Place && back.insert(op.target).second)
      print_line("  " + in_column(say("back"), 9) + op.target);
  for (const Operation& op : journal.operations)
    if (back.count(op.target) == 0) print_line("  " + in_column(say("removed"), 9) + op.target);
}

// Every part of one run, the last one first: the next restore goes on where this one stopped.
int restore_run(const StateFolder& state, const std::string& run, bool may_be_empty) {
  for (bool any = may_be_empty;; any = true) {
    const auto undone = undo_last_of(state, run);
    if (undone) {
      print_undone(*undone);
      continue;
    }
    if (undone.error().code != Errc::NotFound) return complain("restore", undone.error(), kExitFindings);
    if (!any) print_line(undone.error().message);
    return kExitClean;
  }
}

int restore(const StateFolder& state) {
  auto lock = Lock::take(state.root());
  if (!lock) return complain("restore", lock.error(), kExitFindings);
  const auto interrupted = interrupted_runs(state);
  if (!interrupted) return complain("restore", interrupted.error(), kExitFindings);
  std::vector<std::string> lines;
  const auto recovered = recover(state, lines);
  for (const std::string& line : lines) print_line(line);
  if (!recovered) return complain("restore", recovered.error(), kExitFindings);
  if (interrupted->empty()) {
    const auto last = last_run(state);
    return last ? restore_run(state, *last, false) : complain("restore", last.error(), kExitFindings);
  }
  // Undoing the interrupted one was what had been asked for, with the parts of it that were done before.
  for (const std::string& run : *interrupted)
    if (const int status = restore_run(state, run, true); status != kExitClean) return status;
  return kExitClean;
}

}  // namespace

int run_restore(const RestoreOptions& options) {
  const auto host = make_real_host();
  const auto python = chosen_python(*host, options.python);
  if (!python)
    return complain("restore", python.error(), options.python.empty() ? kExitFindings : kExitUsage);
  const auto probed = probe_python(*host, *python);
  if (!probed.present()) return complain("restore", {Errc::NotFound, probed.note, ""}, kExitFindings);
  const auto place = choose_place(*host, probed.value, options.target);
  if (!place) return complain("restore", place.error(), kExitFindings);
  const StateFolder state(place->base);
  if (::access(state.root().c_str(), F_OK) != 0) {
    print_line(say("nothing to restore: scankit has changed nothing in this environment"));
    return kExitClean;
  }
  if (const auto foreign = foreign_to_root(*host, state.root()))
    return complain("restore", foreign_journal(*foreign), kExitFindings);
  return restore(state);
}

}  // namespace scankit
