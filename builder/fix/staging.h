// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/journal.h"
#include "builder/fix/plan.h"
#include "doctor/base/result.h"

namespace scankit {

// Loads the file alone, in a child of the environment's Python; torch is imported first only if the module
// is linked with it. Shows a wrong glibc, a wrong Python ABI or a missing entry point, before anything in
// the environment changes.
Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch);

// Runs `import torch; import MODULE` as the user would, in a child. Asserts that `__file__` is `expected` and
// that the forward gives the numbers of the recurrence or of the convolution, on the CPU and, if torch sees
// one, on the GPU. `extra_path` is put in front of sys.path, for a directory that is on no path yet; "" for
// none. Errc::Conflict: another file was imported. Errc::ToolFailed: the import failed, hung or crashed.
// Errc::Malformed: wrong numbers.
Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path);

// Runs the statement, such as "from mamba_ssm import Mamba", in a fresh interpreter.
Result<void> verify_statement(const std::string& python, const std::string& statement);

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
