// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/transaction.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

// Removes the staging directory. What is left in it are files of ours that found no place or were taken out
// again, and second names of files that are all back.
void drop_staging(const StateFolder& state, const std::string& id) {
  std::error_code ignored;
  std::filesystem::remove_all(state.staging(id), ignored);
  std::filesystem::remove(state.backup(id), ignored);  // only where it is empty
  state.release_room();
}

void drop_unchanged_in(const Journal& journal) {
  for (const Operation& op : journal.operations)
    if (op.kind == Operation::Kind::Tree) drop_unchanged(op.backup);
}

// Undoes the operations from the last to the first. The journal becomes Undone only when all of them are, so
// a kill in here leaves a journal that recover() goes through again.
Result<void> undo_all(const StateFolder& state, Journal& journal, std::vector<std::string>& notes) {
  state.release_room();
  SCANKIT_CHECK(make_directories(state.staging(journal.id)));
  for (auto op = journal.operations.rbegin(); op != journal.operations.rend(); ++op)
    SCANKIT_CHECK(undo(*op, notes));
  journal.state = Journal::State::Undone;
  for (const std::string& note : notes) journal.note += "; " + note;
  SCANKIT_CHECK(state.write(journal));
  drop_staging(state, journal.id);
  return {};
}

Error not_undone(const Error& why, const Error& undoing) {
  return {undoing.code, message("{}; and undoing it failed: {}", why.message, undoing.message),
          message("run `scankit restore` after removing the cause: it continues from here")};
}

}  // namespace

Result<void> Transaction::apply(const std::vector<Operation>& operations) {
  // Before they are among those that are undone: the undoing writes the journal as well.
  SCANKIT_CHECK(can_be_written(operations));
  if (journal_.operations.empty()) SCANKIT_CHECK(state_.hold_room());
  // The order is what makes a kill harmless: the journal is on the disk before the first operation is made.
  journal_.state = Journal::State::Applying;
  journal_.operations.insert(journal_.operations.end(), operations.begin(), operations.end());
  SCANKIT_CHECK(state_.write(journal_));
  for (const Operation& op : operations) SCANKIT_CHECK(scankit::fix::apply(op));
  return {};
}

Result<void> Transaction::note_ends() {
  for (Operation& op : journal_.operations) {
    if (op.kind == Operation::Kind::Tree && ended_unnoted(op.backup))
      SCANKIT_CHECK(note_changes(op.target, op.backup));
    if (op.kind == Operation::Kind::Keep)
      if (auto now = sha256_file(op.target)) op.sha256 = std::move(*now);
  }
  return state_.write(journal_);
}

Result<void> Transaction::commit() {
  journal_.state = Journal::State::Committed;
  SCANKIT_CHECK(state_.write(journal_));
  drop_unchanged_in(journal_);
  drop_staging(state_, journal_.id);
  return {};
}

Error Transaction::roll_back(const Error& why) {
  bool may_say_committed = journal_.state == Journal::State::Committed;
  if (const auto known = state_.journals()) {
    const auto written =
        std::ranges::find_if(*known, [&](const Journal& one) { return one.id == journal_.id; });
    // A transaction whose journal could not be written has changed nothing.
    if (written == known->end()) {
      drop_staging(state_, journal_.id);
      return why;
    }
    may_say_committed = written->state == Journal::State::Committed;
  }
  journal_.state = Journal::State::Applying;
  journal_.note = why.message.english();
  // A commit whose last fsync() failed says Committed all the same. Undone under that name, the fix would pass for done
  // with its backups moved away, and no restore could take it back.
  if (may_say_committed) {
    state_.release_room();
    if (const auto reopened = state_.write(journal_); !reopened) return not_undone(why, reopened.error());
  }
  // The program has ended: what it made is its own, and nothing for the user to keep.
  for (const Operation& op : journal_.operations)
    if (op.kind == Operation::Kind::Tree && ended_unnoted(op.backup))
      (void)note_changes(op.target, op.backup).has_value();
  std::vector<std::string> notes;
  const auto undone = undo_all(state_, journal_, notes);
  if (!undone) return not_undone(why, undone.error());
  Error told = why;
  for (const std::string& note : notes) told.message = message("{}; {}", told.message, note);
  return told;
}

Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify) {
  const auto operations = std::exchange(journal.operations, {});
  Transaction transaction(state, std::move(journal));
  Result<void> done = transaction.apply(operations);
  if (done) done = verify();
  if (done) done = transaction.commit();
  if (done) return done;
  return transaction.roll_back(done.error());
}

Result<void> recover(const StateFolder& state, std::vector<std::string>& done) {
  SCANKIT_TRY(auto journals, state.journals());
  for (auto journal = journals.rbegin(); journal != journals.rend(); ++journal) {
    const bool applying = journal->state == Journal::State::Applying;
    if (journal->state == Journal::State::Committed && check_journal(state, *journal))
      drop_unchanged_in(*journal);  // killed while it did that
    if (!applying && journal->state != Journal::State::Undoing) continue;
    if (applying) journal->note = "interrupted";
    std::vector<std::string> notes;
    SCANKIT_CHECK(undo_all(state, *journal, notes));
    done.push_back(applying ? say("the interrupted fix {} was undone", journal->id)
                            : say("the interrupted restore of fix {} was completed", journal->id));
    for (const std::string& note : notes) done.push_back(note);
  }
  // Staged, and killed before its journal was written.
  std::error_code ignored;
  std::filesystem::remove_all(state.root() + "/staging", ignored);
  return {};
}

// Looks at every operation before the first one is undone. Two cases only look like conflicts: a saved file
// whose place the same fix took, and a file of an installer that the same fix changed afterwards.
static Result<void> can_undo_all(const Journal& journal) {
  std::set<std::string> ours, placed;
  for (const Operation& op : journal.operations) {
    if (op.kind != Operation::Kind::Tree) ours.insert(op.target);
    if (op.kind == Operation::Kind::Place) placed.insert(op.target);
  }
  for (const Operation& op : journal.operations) {
    if (op.kind != Operation::Kind::Save || placed.count(op.target) == 0) SCANKIT_CHECK(can_undo(op));
    if (op.kind == Operation::Kind::Tree) SCANKIT_CHECK(can_restore_tree(op.target, op.backup, ours));
  }
  return {};
}

static Error nothing_to_undo(bool nothing_done) {
  return {Errc::NotFound,
          nothing_done ? message("nothing to restore: scankit has changed nothing in this environment")
                       : message("nothing to restore: every fix of this environment is already undone"),
          ""};
}

Result<Journal> undo_last_of(const StateFolder& state, const std::string& run) {
  SCANKIT_TRY(auto journals, state.journals());
  for (auto journal = journals.rbegin(); journal != journals.rend(); ++journal) {
    if (journal->state != Journal::State::Committed || journal->run != run) continue;
    SCANKIT_CHECK(check_journal(state, *journal));
    SCANKIT_CHECK(can_undo_all(*journal));
    journal->state = Journal::State::Undoing;
    journal->note = "restored";
    SCANKIT_CHECK(state.write(*journal));
    std::vector<std::string> notes;
    SCANKIT_CHECK(undo_all(state, *journal, notes));
    return *journal;
  }
  return nothing_to_undo(journals.empty());
}

Result<Journal> undo_last(const StateFolder& state) {
  SCANKIT_TRY(const std::string run, last_run(state));
  return undo_last_of(state, run);
}

Result<std::string> last_run(const StateFolder& state) {
  SCANKIT_TRY(const auto journals, state.journals());
  for (auto journal = journals.rbegin(); journal != journals.rend(); ++journal)
    if (journal->state == Journal::State::Committed) return journal->run;
  return std::string();
}

Result<std::vector<Journal>> interrupted(const StateFolder& state) {
  SCANKIT_TRY(auto journals, state.journals());
  std::erase_if(journals, [](const Journal& journal) {
    return journal.state != Journal::State::Applying && journal.state != Journal::State::Undoing;
  });
  return journals;
}

// The runs of interrupted journals, with their committed parts; else the last committed run.
Result<std::vector<Journal>> next_to_undo(const StateFolder& state) {
  SCANKIT_TRY(const auto journals, state.journals());
  std::set<std::string> runs;
  std::vector<Journal> next;
  for (const Journal& journal : journals)
    if (journal.state == Journal::State::Applying || journal.state == Journal::State::Undoing) {
      runs.insert(journal.run);
      next.push_back(journal);
    }
  if (runs.empty())
    for (const Journal& journal : journals)
      if (journal.state == Journal::State::Committed) runs = {journal.run};
  for (const Journal& journal : journals)
    if (journal.state == Journal::State::Committed && runs.contains(journal.run)) {
      SCANKIT_CHECK(check_journal(state, journal));
      next.push_back(journal);
    }
  return next;
}

}  // namespace scankit::fix
