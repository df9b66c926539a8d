// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/journal.h"
#include "builder/fix/plan.h"

namespace scankit {

// The files of one fix, made aside, and the renames that bring them in. Nothing of the environment changes.
class Staging {
 public:
  Staging(const StateFolder& state, std::string id)
      : staging_(state.staging(id)), backup_(state.backup(id)) {}

  Result<void> make_folders(const std::string& site) const;
  // Writes the module and its records, and loads it in `python` without torch.
  Result<void> stage_module(const Host& host, const BuiltModule& built, const std::string& python) const;
  // Records first, the file that Python imports last.
  Result<std::vector<Operation>> install(const BuiltModule& built, const std::string& site);
  Result<Operation> place_file(const std::string& target, const std::string& bytes);
  Result<Operation> move_away(const std::string& path);
  // The script with a line for the variable at its end.
  Result<Operation> set_variable(const SetVariable& variable, const std::string& fix);
  // A folder that an installer will change, or a file that a program will: their old state, made now.
  Result<Operation> leave_tree(const std::string& root);
  Result<Operation> leave_file(const std::string& file);

 private:
  std::string backup_for(const std::string& path);

  std::string staging_, backup_;
  unsigned saved_ = 0;
};

}  // namespace scankit
