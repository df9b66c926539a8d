// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <set>

#include "builder/commands.h"
#include "builder/install/lock.h"
#include "builder/install/place.h"
#include "builder/install/transaction.h"
#include "doctor/base/exit_status.h"
#include "doctor/probes/python.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

void print_undone(const Journal& journal) {
  std::printf("undone: fix %s (%s %s)\n", journal.id.c_str(), plain(journal.module, false).c_str(),
              plain(journal.version, false).c_str());
  std::set<std::string> back;
  for (const Operation& op : journal.operations)
    if (op.kind != Operation::Kind::Place && back.insert(op.target).second)
      std::printf("  %-8s %s\n", "back", plain(op.target, false).c_str());
  for (const Operation& op : journal.operations)
    if (back.count(op.target) == 0) std::printf("  %-8s %s\n", "removed", plain(op.target, false).c_str());
}

int restore(const StateFolder& state) {
  auto lock = Lock::take(state.root());
  if (!lock) return complain("restore", lock.error(), kExitFindings);
  std::vector<std::string> lines;
  const auto recovered = recover(state, lines);
  for (const std::string& line : lines) std::printf("%s\n", plain(line, false).c_str());
  if (!recovered) return complain("restore", recovered.error(), kExitFindings);
  // Undoing the interrupted one was what had been asked for.
  if (!lines.empty()) return kExitClean;
  const auto undone = undo_last(state);
  if (undone) {
    print_undone(*undone);
    return kExitClean;
  }
  if (undone.error().message.starts_with("nothing to restore")) {
    std::printf("%s\n", undone.error().message.c_str());
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
    std::printf("nothing to restore: scankit has changed nothing in this environment\n");
    return kExitClean;
  }
  return restore(state);
}

}  // namespace scankit
