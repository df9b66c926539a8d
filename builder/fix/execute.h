// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "builder/installer/installer.h"
#include "doctor/base/result.h"

namespace scankit::fix {

// What all parts of a run share, and the part to execute. The pointers must outlive the call.
struct ExecuteRequest {
  const FixPlan* plan = nullptr;  // one part of it (plan.h)
  const std::map<std::string, compile::BuiltModule>* built =
      nullptr;                       // by name, modules_of(*plan) among them
  std::vector<InstallBundled> kept;  // of parts that this run has made before: they must stay right
  std::string run;                   // the first journal of this run, "" where this is it
  std::string python;                // what verifies
  std::string project;               // the uv project whose environment it is, or ""
  installer::Installer project_installer;
  int lock = -1;                     // its descriptor: an installer holds it too
  std::function<Report()> diagnose;  // as before the fix
  std::function<Snapshot()> facts;   // the same without an import
  TestRecord* test = nullptr;        // must pass in the end; nullptr for none
};
// How far a part came. Preparation: staging, an installer, or a change failed. Verification: everything was
// in place and did not work.
enum class FailedAt { Nothing, Preparation, Verification, Undoing };  // Undoing: the old state is not back

struct FixResult {
  std::string journal;             // its id
  std::vector<std::string> notes;  // what the user is to know
  std::vector<Untested> untested;
};

// Stages, writes the journal, changes, and verifies. On a failure everything is as it was before, unless
// `failed_at` is Undoing. The caller has the lock, has called recover(), and keeps an Interruption alive.
Result<FixResult> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                              FailedAt& failed_at);

// How a part of a plan ended.
struct PartResult {
  FixPlan plan;
  FailedAt failed_at = FailedAt::Nothing;
  Error error;       // where it failed; its changes are undone
  FixResult result;  // else
  bool kept() const { return failed_at == FailedAt::Nothing; }
};

// Executes each part by itself, except those that have failed already, as in their build. A part that fails
// does not stop the next one; a signal does, and so does an undoing that failed, since the environment is
// then in neither state. `request.plan`, `kept` and `run` are set here.
void execute_parts(const Host& host, const StateFolder& state, ExecuteRequest request,
                   std::vector<PartResult>& parts);

// Loads the file alone, in a child of the environment's Python; torch is imported first only if the module
// is linked with it. Shows a wrong glibc, a wrong Python ABI or a missing entry point, before anything in
// the environment changes.
Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch);

// Runs `import torch; import MODULE` as the user would, in a child. Asserts that `__file__` is `expected` and
// that the forward gives the numbers of the recurrence or of the convolution, on the CPU and, if torch sees
// one, on the GPU. `extra_path` is put in front of sys.path, for a directory that is on no path yet; "" for
// none. Errc::Conflict: another file was imported. Errc::ToolFailed: the import failed, hung or crashed, or the
// module cannot read its device code, so that nobody knows whether there is any. Errc::Malformed: wrong numbers.
Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path);

// Imports torch, the modules and the package that has the name of the distribution. The modules must come from their
// files of the environment, with the bytes of the wheel, and its version be the installed one: an installer may end
// without an error and have installed nothing. Errc::Conflict: something else is there.
// What only the missing GPU stopped, as in verify_statement(), comes back as a statement, "import torch, my_ext._C";
// the compiled modules are loaded without their package then. "" where everything was imported.
Result<std::string> verify_package(const std::string& python, const std::string& distribution,
                                   const std::string& version, const std::vector<WheelModule>& modules);

// Runs the file, its output to standard error, for at most ten minutes, or until a signal comes (Interruption).
declared::TestRun run_test(const std::string& python, const std::string& file);

// What was built of one package, as it is installed now; nothing where it has no RECORD, without which nobody can tell
// later whether this build is still installed. `variables`: "NAME=VALUE" of the build, which count more than the shell's.
std::optional<BuildNote> note_of_build(const Snapshot& after, const std::string& package,
                                       const std::string& installer,
                                       const std::vector<std::string>& variables);
// What the steps had built from source, as it is installed now.
std::vector<BuildNote> builds_of(const std::vector<RepairStep>& steps, const Snapshot& after);

// Runs the statement, such as "from mamba_ssm import Mamba", in a fresh interpreter.
// False where the machine is in the way, not the installation: triton up to 3.3 asks the GPU's driver while a kernel is
// decorated, so that on a login node nothing with such kernels can be imported (seen with 3.2.0 and 3.3.1, not with 3.4.0).
Result<bool> verify_statement(const std::string& python, const std::string& statement);

// Makes the files of one fix aside and returns the operations that bring them in. Nothing in the environment
// changes here, but directories may be made.
class Staging {
 public:
  Staging(const StateFolder& state, std::string id)
      : staging_(state.staging(id)), backup_(state.backup(id)) {}

  Result<void> make_folders(const std::string& site) const;
  // Writes the module and its records, and loads it in `python`; a universal one without torch.
  Result<void> stage_module(const Host& host, const compile::BuiltModule& built,
                            const std::string& python) const;
  // Operations that install a staged module: older records go away, the new records come, and the file that
  // Python imports is the last.
  Result<std::vector<Operation>> install(const compile::BuiltModule& built, const std::string& site);
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

// The keeper: a process between us and the user's installer. The installer shares our process group, since
// Ctrl-C and its questions are the terminal's, so what it starts cannot be killed as a group
// (doctor/base/process.h). Much of that is not its child any more: a build starts daemons, and may end
// before its compilers do. The kernel gives such orphans to the keeper (PR_SET_CHILD_SUBREAPER).
//
// If scankit is killed, or if the installer fails, the keeper kills everything that the installer started
// before its work is undone; until then the keeper has our lock. After a success nothing is killed: what
// stays is meant to stay.
//
// Call it in a child that was forked with all signals blocked. `become` is the installer's part and does not
// return; it gets the keeper's process id. The keeper ends as the installer did.
[[noreturn]] void keep_installer(pid_t parent, const std::function<void(pid_t)>& become);

// Runs the user's installer in the foreground: its output goes to standard error as it comes, and Ctrl-C
// reaches it. It dies with us, and so does everything that it started. Until then it has `lock`, a descriptor
// or -1, so that the next scankit waits for its end. Errc::ToolFailed if it failed.
Result<void> run_installer(const installer::InstallerCommand& command, int lock);

}  // namespace scankit::fix
