// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "builder/installer/installer.h"
#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/document.h"
#include "envspec/spec/derive.h"
#include "envspec/suggest/solve.h"

// `scankit env suggest` around the constraint layer (solve.h): the parts in the order in which they are used.
namespace scankit::envspec {

// 1. How the environment is made: commands.cc ------------------------------------------------------------------

// By what the environment is made.
struct SuggestInstaller {
  enum class Kind : std::uint8_t { Uv, Pip, Conda };
  Kind kind = Kind::Pip;
  std::string program =
      "uv";  // uv's or conda's, as the shell finds it; of pip the Python that makes the venv, "" for pythonX.Y
};
std::string_view installer_word(SuggestInstaller::Kind kind);

struct CommandRequest {
  SuggestInstaller installer;
  std::string directory;           // of the new environment: ".venv"
  std::string scankit;             // as it was started
  std::string archs;               // "sm_80,sm_90" where the GPUs were described; "" for those of the machine
  std::vector<std::string> extra;  // further requirements of the user on torch's companions: "triton<3.6"
};
// The commands that make the set, in their order, each as a shell takes it. The last one checks the result.
std::vector<std::string> commands_of(const SuggestedSet& set, const CommandRequest& request);

// 2. For which machine: machine.cc -----------------------------------------------------------------------------

// What the user described; "" or empty for what is taken from the machine.
struct DescribedTarget {
  std::vector<std::string> gpus;  // "sm_90"; "none" for a machine without one
  std::string driver, glibc;      // "550.54", "2.28"
  std::string python;             // "3.11", or a range
  std::string from;               // --for: a stored snapshot or a scankit.yaml
  std::string machine;            // "aarch64"
};

// The request, and what is to be said about how it was made.
struct SuggestTarget {
  SuggestRequest request;
  std::vector<std::pair<std::string, std::string>> facts;  // "GPU", "sm_90 (--gpu)": for people
  std::vector<Message> notes;                              // what is not considered, and why
  bool unknown = false;                                    // a fact that the answer needs could not be read
  bool described_gpus = false;  // GPUs that commands must name, since they are not those of the machine
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

// 3. What is shown: report.cc ------------------------------------------------------------------------------------

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

// 4. What an index says: index_check.cc --------------------------------------------------------------------------

// Whether the user's index has what a set installs from it: torch, the exact requirements of its packages, and their
// source archives. Asked through uv or pip; nothing is installed and nothing of the index is run. A build of torch from
// PyTorch's archive is asked of uv only, which knows where that is.
struct IndexCheck {
  installer::Installer installer;
  std::chrono::milliseconds deadline{20'000};  // for all sets together
};

// uv where it is on PATH, unless pip's settings alone name an index; else what brings wheels to this environment.
installer::Installer index_installer_for(const Host& host, const Snapshot& machine);

// Asks for the first sets until `wanted` of them are confirmed, and takes those that the index refuses out of the
// suggestion. Fills `index` and `refused_by_index`. An index that does not answer confirms nothing and refuses nothing.
void check_index(const IndexCheck& check, std::size_t wanted, SuggestAnswer& answer);

// The requirements that one set asks of the index: "torch==2.10.0", "tilelang==0.1.8".
std::vector<std::string> requirements_of(const SuggestedSet& set);

}  // namespace scankit::envspec
