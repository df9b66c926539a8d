// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/journal.h"
#include "builder/fix/plan.h"

namespace scankit {

// Makes the files of one fix aside and returns the operations that bring them in. Nothing in the environment
// changes here, but directories may be made.
class Staging {
 public:
  Staging(const StateFolder& state, std::string id)
      : staging_(state.staging(id)), backup_(state.backup(id)) {}

  Result<void> make_folders(const std::string& site) const;
  // Writes the module and its records, and loads it in `python`; a universal one without torch.
  Result<void> stage_module(const Host& host, const BuiltModule& built, const std::string& python) const;
  // Operations that install a staged module: older records go away, the new records come, and the file that
  // Python imports is the last.
  Result<std::vector<Operation>> install(const BuiltModule& built, const std::string& site);
  Result<Operation> place_file(const std::string& target, const std::string& bytes);
  Result<Operation> move_away(const std::string& path);
  // The script with a line for the variable at its end.
  Result<Operation> set_variable(const SetVariable& variable, const std::string& fix);
  // Saves the old state of a directory or file that a program will change; the copy is made now.
  Result<Operation> leave_tree(const std::string& root);
  Result<Operation> leave_file(const std::string& file);

 private:
  std::string backup_for(const std::string& path);

  std::string staging_, backup_;
  unsigned saved_ = 0;
};

}  // namespace scankit
