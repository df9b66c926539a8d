// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "doctor/report/document.h"
#include "envspec/spec/derive.h"
#include "envspec/suggest/commands.h"
#include "envspec/suggest/machine.h"
#include "envspec/suggest/solve.h"

namespace scankit::envspec {

// What an index said of a set.
struct IndexAnswer {
  enum class State : std::uint8_t { NotAsked, Confirmed, Refused, NoAnswer };
  State state = State::NotAsked;
  Message why;                 // of NotAsked, Refused and NoAnswer
  std::vector<Message> notes;  // a release was yanked, a newer one exists
};

// Everything that is shown.
struct SuggestAnswer {
  SuggestTarget target;
  Suggestion suggestion;
  std::vector<IndexAnswer> index;  // of each set
  CommandRequest commands;
  std::vector<std::string> refused_by_index;  // sentences: sets that the index does not have
  bool offline = false;
};

int exit_status_of(const SuggestAnswer& answer);
report::Views suggest_views(const SuggestAnswer& answer);

// The set as a spec: its Python, torch and modules. `env create --spec` takes it where every module has a package.
DerivedSpec spec_of(const SuggestAnswer& answer, const SuggestedSet& set);

}  // namespace scankit::envspec
