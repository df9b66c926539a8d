// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "envspec/suggest/commands.h"
#include "envspec/suggest/solve.h"

namespace scankit::envspec {

// What the user described; "" or empty for what is taken from the machine.
struct DescribedTarget {
  std::vector<std::string> gpus;  // "sm_90"; "none" for a machine without one
  std::string driver, glibc;      // "550.54", "2.28"
  std::string python;             // "3.11", or a range
  std::string from;               // --for: a stored snapshot or a scankit.yaml
};

// The request, and what is to be said about how it was made.
struct SuggestTarget {
  SuggestRequest request;
  std::vector<std::pair<std::string, std::string>> facts;  // "GPU", "sm_90 (--gpu)": for people
  std::vector<Message> notes;                              // what is not considered, and why
  bool unknown = false;                                    // a fact that the answer needs could not be read
  bool described_gpus = false;  // GPUs that commands must name, since they are not those of the machine
  std::string processor;        // "x86_64"
};

// Puts together what was described and what the snapshot says of the machine. `where`: what messages call the
// snapshot: "this machine", or its file.
Result<SuggestTarget> target_of(const DescribedTarget& described, const Snapshot& machine,
                                const std::string& where);
// Adds what a spec demands. Its ranges of Python and torch stay ranges.
void add_spec(const Spec& spec, SuggestTarget& target);

// Which installer makes the environment: conda where the environment of `machine` is conda's, else uv where it is
// on PATH, else pip, else conda. `python`: the minor release that a venv needs.
SuggestInstaller installer_for(const Host& host, const Snapshot& machine);

}  // namespace scankit::envspec
