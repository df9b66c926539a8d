// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "builder/fix/journal.h"

namespace scankit {

// A change of an environment that stays as a whole or not at all. Whatever it does next is in the journal
// before it is done, so that the next scankit can undo a kill at any point. The caller decides the order of
// the operations: the one that changes what Python imports comes last. Errors are in English, as the
// journal's note is.
class Transaction {
 public:
  Transaction(const StateFolder& state, Journal journal) : state_(state), journal_(std::move(journal)) {}

  // Adds the operations to the journal and makes them; may be called several times. Staged files must be
  // where the operations say.
  Result<void> apply(const std::vector<Operation>& operations);
  void add_step(const Message& line) { journal_.steps.push_back(line.english()); }
  // A program has ended: what it made of the files that were left to it belongs to the fix from now on.
  Result<void> note_ends();
  Result<void> commit();
  // Undoes everything. The answer is `why`, together with whatever went wrong in undoing.
  Error roll_back(const Error& why);
  const Journal& journal() const { return journal_; }

 private:
  const StateFolder& state_;
  Journal journal_;
};

// A whole transaction without a program in between: applies the operations of `journal`, then asks `verify`.
Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify);

// If a fix or a restore was killed, brings the environment back to the state before that fix. `done` gets a
// line for each, and further ones that the user should know.
Result<void> recover(const StateFolder& state, std::vector<std::string>& done);

// Undoes the last committed journal and returns it; its note says what could not be as before. Errc::NotFound
// if there is none.
Result<Journal> undo_last(const StateFolder& state);
// The last committed journal of that run alone.
Result<Journal> undo_last_of(const StateFolder& state, const std::string& run);

// The run of the last committed journal, "" where there is none.
Result<std::string> last_run(const StateFolder& state);
// The journals that are neither done nor undone. recover() brings them to an end.
Result<std::vector<Journal>> interrupted(const StateFolder& state);
// What `scankit restore` takes back: the interrupted runs, else the last one.
Result<std::vector<Journal>> next_to_undo(const StateFolder& state);

}  // namespace scankit
