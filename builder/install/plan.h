// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/image.h"
#include "builder/install/place.h"
#include "doctor/model/finding.h"

namespace scankit {

// What `scankit fix` would do to an environment, before anything is done.
struct FixPlan {
  enum class Kind {
    NothingToDo,
    NotRepairable,  // the doctor found errors, and none has a repair that scankit can make
    Inconclusive,   // no error seen, no working import either
    Act
  } kind = Kind::NothingToDo;
  std::string why;                  // one sentence: what is wrong, or that nothing is
  std::vector<std::string> advice;  // NotRepairable: what the user can do
  bool install = false;             // build and install the module; else only move files away
  struct Move {
    std::string path, owner;  // owner: the distribution whose file it is, or ""
  };
  std::vector<Move> moves;  // in the order in which they are made: what import takes today comes last
  InstallPlace place;
};

// `report` is folded. `wanted` are the targets named with --arch: a module of ours that lacks one is built
// again.
Result<FixPlan> plan_fix(const Report& report, const std::string& module, const InstallPlace& place,
                         const std::vector<Target>& wanted);

}  // namespace scankit
