// SPDX-License-Identifier: Apache-2.0
#include "builder/install/transaction.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

// What is left in the staging folder are files of ours that found no place, or were taken out of it.
void drop_staging(const StateFolder& state, const std::string& id) {
  std::error_code ignored;
  std::filesystem::remove_all(state.staging(id), ignored);
  std::filesystem::remove(state.backup(id), ignored);  // only where it is empty
}

Result<void> undo_all(const StateFolder& state, Journal& journal) {
  SCANKIT_CHECK(make_directories(state.staging(journal.id)));
  for (auto op = journal.operations.rbegin(); op != journal.operations.rend(); ++op) SCANKIT_CHECK(undo(*op));
  journal.state = Journal::State::Undone;
  SCANKIT_CHECK(state.write(journal));
  drop_staging(state, journal.id);
  return {};
}

Error unfinished(const Error& first, const Error& second) {
  return {second.code, say("{}; and undoing it failed: {}", first.message, second.message),
          say("run `scankit restore` once the cause is gone: it goes on where this one stopped")};
}

}  // namespace

Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify) {
  const Speaking the_journal_is_english(nullptr);
  journal.state = Journal::State::Applying;
  Result<void> done = state.write(journal);
  if (!done) {
    drop_staging(state, journal.id);
    return done;
  }
  for (const Operation& op : journal.operations)
    if (done) done = apply(op);
  if (done) done = verify();
  if (done) {
    journal.state = Journal::State::Committed;
    done = state.write(journal);
  }
  if (done) {
    drop_staging(state, journal.id);
    return {};
  }
  journal.note = done.error().message;
  if (auto undone = undo_all(state, journal); !undone) return unfinished(done.error(), undone.error());
  return done;
}

Result<void> recover(const StateFolder& state, std::vector<std::string>& done) {
  SCANKIT_TRY(auto journals, state.journals());
  for (auto journal = journals.rbegin(); journal != journals.rend(); ++journal) {
    if (journal->state == Journal::State::Applying) {
      journal->note = "interrupted";
      SCANKIT_CHECK(undo_all(state, *journal));
      done.push_back(say("fix {} had been interrupted: its changes were undone", journal->id));
    } else if (journal->state == Journal::State::Undoing) {
      SCANKIT_CHECK(undo_all(state, *journal));
      done.push_back(say("restore of fix {} had been interrupted: it was finished", journal->id));
    }
  }
  // Staged, and killed before its journal was written.
  std::error_code ignored;
  std::filesystem::remove_all(state.root() + "/staging", ignored);
  return {};
}

// Looks at every operation before the first is undone. A saved file whose place the same fix took is no
// conflict.
static Result<void> can_undo_all(const Journal& journal) {
  for (const Operation& op : journal.operations) {
    const bool took_the_place = std::ranges::any_of(journal.operations, [&](const Operation& other) {
      return other.kind == Operation::Kind::Place && other.target == op.target;
    });
    if (op.kind != Operation::Kind::Save || !took_the_place) SCANKIT_CHECK(can_undo(op));
  }
  return {};
}

Result<Journal> undo_last(const StateFolder& state) {
  SCANKIT_TRY(auto journals, state.journals());
  for (auto journal = journals.rbegin(); journal != journals.rend(); ++journal) {
    if (journal->state != Journal::State::Committed) continue;
    SCANKIT_CHECK(can_undo_all(*journal));
    journal->state = Journal::State::Undoing;
    journal->note = "restored";
    SCANKIT_CHECK(state.write(*journal));
    SCANKIT_CHECK(undo_all(state, *journal));
    return *journal;
  }
  return Error{Errc::NotFound,
               journals.empty() ? say("nothing to restore: scankit has changed nothing in this environment")
                                : say("nothing to restore: every fix of this environment is already undone"),
               ""};
}

}  // namespace scankit
