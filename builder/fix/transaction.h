// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "builder/fix/journal.h"

namespace scankit {

// A change of an environment that comes to stay as a whole or not at all. What it does next is in the journal
// before it is done, so that a kill at any point can be undone by whoever comes next. The order of the
// operations is the caller's: the one that changes what Python imports comes last. Errors are in English, as
// the journal's note is: retold() says them to the user.
class Transaction {
 public:
  Transaction(const StateFolder& state, Journal journal) : state_(state), journal_(std::move(journal)) {}

  // The staged files must lie where the operations say.
  Result<void> apply(const std::vector<Operation>& operations);
  void add_step(const std::string& line) { journal_.steps.push_back(line); }
  // A program has ended: what it made of the files that were left to it is from now on the fix's own.
  Result<void> note_ends();
  Result<void> commit();
  // Undoes everything; the answer is `why`, and what went wrong with that too.
  Error roll_back(const Error& why);
  const Journal& journal() const { return journal_; }

 private:
  const StateFolder& state_;
  Journal journal_;
};

// All of it for operations that need no program in between: applies them in order, then asks `verify`.
Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify);

// Brings an environment in which a fix or a restore was killed back to the state before that fix. `done` gets
// one line for each, and further ones for what is to be known.
Result<void> recover(const StateFolder& state, std::vector<std::string>& done);

// Undoes the last committed journal and returns it; its note says what could not be as before. Errc::NotFound
// where there is none.
Result<Journal> undo_last(const StateFolder& state);
// The last committed journal of that run alone.
Result<Journal> undo_last_of(const StateFolder& state, const std::string& run);

// The run of the last committed journal, "" where there is none.
Result<std::string> last_run(const StateFolder& state);
// Neither done nor undone: recover() brings them to an end.
Result<std::vector<Journal>> interrupted(const StateFolder& state);
// What `scankit restore` takes back: the interrupted runs, else the last one.
Result<std::vector<Journal>> next_to_undo(const StateFolder& state);

}  // namespace scankit
