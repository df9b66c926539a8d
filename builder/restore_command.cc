// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
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

void print(const std::string& text) { std::printf("%s\n", plain(text, false).c_str()); }

void print_undone(const Journal& journal) {
  print(say("undone: fix {} ({} {})", journal.id, journal.module, journal.version));
  for (const std::string& step : journal.steps) print("  " + in_column(say("step"), 9) + retold(step));
  std::set<std::string> back;
  for (const Operation& op : journal.operations)
    if (op.kind != Operation::Kind::Place && back.insert(op.target).second)
      print("  " + in_column(say("back"), 9) + op.target);
  for (const Operation& op : journal.operations)
    if (back.count(op.target) == 0) print("  " + in_column(say("removed"), 9) + op.target);
}

// True too where that cannot be read: undo_last says why.
bool anything_committed(const StateFolder& state) {
  const auto journals = state.journals();
  return !journals || std::ranges::any_of(*journals, [](const Journal& journal) {
    return journal.state == Journal::State::Committed;
  });
}

int restore(const StateFolder& state) {
  auto lock = Lock::take(state.root());
  if (!lock) return complain("restore", lock.error(), kExitFindings);
  std::vector<std::string> lines;
  const auto recovered = recover(state, lines);
  for (const std::string& line : lines) print(line);
  if (!recovered) return complain("restore", recovered.error(), kExitFindings);
  // Undoing the interrupted one was what had been asked for.
  if (!lines.empty()) return kExitClean;
  const bool nothing_left = !anything_committed(state);
  const auto undone = undo_last(state);
  if (undone) {
    print_undone(*undone);
    return kExitClean;
  }
  if (nothing_left) {
    print(undone.error().message);
    return kExitClean;
  }
  return complain("restore", undone.error(), kExitFindings);
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
    print(say("nothing to restore: scankit has changed nothing in this environment"));
    return kExitClean;
  }
  if (const auto foreign = foreign_to_root(*host, state.root()))
    return complain("restore", foreign_journal(*foreign), kExitFindings);
  return restore(state);
}

}  // namespace scankit
