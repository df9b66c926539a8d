// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/message.h"
#include "doctor/logs/classify.h"

// Why an installed package lacks a name or a module: it is older than the first release that has it, or newer than the
// last one. Of a name that came and went a log does not show which of the two.
namespace scankit::logs {

enum class Lacking { Unknown, NotYet, NoLonger };

struct NameHistory {
  Lacking why = Lacking::Unknown;
  std::string package;  // "torch", as it is imported; "Python" of its own modules
  std::string first,
      gone;  // the first release that has the name, and the first that no longer has it; "" for no limit
};

// Of `name` in `module` ("torch.library"); "" for the module itself.
NameHistory history_of(const std::string& module, const std::string& name);

// "torch.library has no register_fake, which came with torch 2.4"; `otherwise` where no release is known.
Message lacking_because(const NameHistory& history, const std::string& module, const std::string& name,
                        Message otherwise);

// Adds the facts from which the next step names a release: "distribution" with "first_release", "gone_in" or both.
void add_history(const NameHistory& history, Judged& judged);

}  // namespace scankit::logs
