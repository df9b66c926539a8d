// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"
#include "envspec/check/facts.h"

// The lock's half of `scankit env check`: one Outcome a question, each drift a Finding in it. What the facts
// do not tell is CheckState::Unknown with `could_hide_error`. An Error: the lock cannot be read, or is not
// for us.
namespace scankit {

struct LockCheckOptions {
  std::string lock;       // the file
  std::string cache_dir;  // of hashes; "": the user's
};
Result<std::vector<Outcome>> check_lock(const LockCheckOptions& options, const Subject& subject);

}  // namespace scankit
