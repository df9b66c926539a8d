// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "builder/install/journal.h"

namespace scankit {

// Applies the journal's operations in order, then asks `verify`; whatever fails, everything is undone and the
// Error is that failure's. The staged files must lie where the operations say; nothing in the environment has
// changed before. The order of the operations is the caller's: the one that changes what Python imports comes
// last. The Error is in English, as the journal's note is: retold() says it to the user.
Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify);

// Brings an environment in which a fix or a restore was killed back to the state before that fix. `done` gets
// one line for each.
Result<void> recover(const StateFolder& state, std::vector<std::string>& done);

// Undoes the last committed journal and returns it. Errc::NotFound where there is none.
Result<Journal> undo_last(const StateFolder& state);

}  // namespace scankit
