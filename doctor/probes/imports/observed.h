// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/model/snapshot.h"

namespace scankit {
class Host;
}

namespace scankit::probes {

// What the kernel says that a process waits for: "flock on /tmp/build/lock", "futex", "" where it does not
// say. Reads /proc/PID/syscall, wchan and fd (proc(5)).
std::string kernel_wait(int pid);

// Looks at a child shortly before its time is over. The child's pid comes with its first line on the channel.
class HangWatch {
 public:
  explicit HangWatch(std::chrono::milliseconds timeout);
  ~HangWatch() { (void)finish(); }
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  void channel(std::string_view bytes);  // ProcessRequest::on_channel
  std::string finish();                  // what was seen; "" where the child ended in time

 private:
  // Waits for that time, and looks at the child if it still runs.
  void watch(std::chrono::milliseconds node_deadline);

  std::mutex lock_;
  std::condition_variable over_;
  bool ended_ = false;
  std::string first_line_, seen_;
  std::thread thread_;
};

// What one child said of the modules it was to import, in order. A module that it did not come to is not
// listed. `modules` are those of observed_program.h, which says what "?" and ":" in them mean.
struct ChildAnswer {
  bool started = false;  // our program began to run
  Message why_not;       // not started: one line
  std::string outcome;   // not started: "timeout", "crashed" or "error" of the interpreter itself
  int signal = 0;
  std::int64_t duration_ms = 0;
  std::vector<Observation> imports;
};

// `begins` hears the name of each module when its import begins, from this thread; it may be empty. `apart`: without the
// current directory on sys.path, for names that the user has not chosen.
ChildAnswer import_in_child(const std::string& python, const std::vector<std::string>& modules,
                            std::chrono::milliseconds timeout,
                            const std::function<void(const std::string& module)>& begins = {},
                            bool apart = false);
// The same from a finished process; for tests.
ChildAnswer read_child(const std::string& python, const ProcessResult& process);

// Files of the current directory that a Python started there imports in the place of a module that only an installed
// package declares, which observe_imports() imports without that directory. A sentence each.
std::vector<Message> namesakes_here(const Host& host, const Snapshot& snapshot);

// The environment of such a child: the user's, since PYTHONPATH and the loader's variables are part of the
// question, without what makes Python run or print other things, and without the leave to write .pyc files.
std::vector<std::string> child_environment(const char* const* variables);

enum class ImportPolicy {
  Never,        // --no-import: files only
  IfOursToRun,  // not as root on files of another user: running somebody else's Python is running their code
  Always        // --import
};

struct ObserveRequest {
  ImportPolicy policy = ImportPolicy::IfOursToRun;
  std::chrono::milliseconds timeout{60000};                       // of each child
  std::optional<std::chrono::steady_clock::time_point> deadline;  // of all of them, by --budget
  bool can_be_asked_for = true;                                   // the command has --import
  // What is imported just now, since when, and after how long it is given up: the longest of those that run.
  // From any thread, never two at once; may be empty.
  std::function<void(const Message& phase, std::chrono::steady_clock::time_point since,
                     std::chrono::milliseconds limit)>
      running;
};

// Imports torch and every module under diagnosis for real, each in a child of its own: a crash, a hang or
// noise is a fact about the module. NotRun where the policy forbids it, Failed where the interpreter cannot
// be started.
Probed<std::vector<Observation>> observe_imports(const Host& host, const Snapshot& so_far,
                                                 const ObserveRequest& request);

// Really loads each file of the audit that the static pass says would fail, in a child of its own, after
// torch and the file's own package: packages find libraries for their extensions in ways that no table of the
// file shows. What loads is no longer missing anything; a file that fails keeps what the static pass found.
// Nothing is tried that the request's deadline leaves no time for. Only where imports are allowed.
void try_suspects(Snapshot& snapshot, const ObserveRequest& request);

// What to import, in a child for each package: the package, as the first thing in a fresh interpreter; then
// torch, and the siblings that the package takes names from (by themselves, below its `except ImportError`).
// In the words of observed_program.h.
std::vector<std::vector<std::string>> package_imports(const Snapshot& snapshot, bool with_torch);
// The module, with the names that packages call in it: "selective_scan_cuda:bwd,fwd".
std::string with_called_names(const Snapshot& snapshot, const std::string& module);
std::string bare_name(const std::string& request);  // without "?" and names

// What became of them, as "sibling" and "package" observations.
void take_package(const std::string& package, const std::vector<Observation>& imports,
                  std::vector<Observation>& seen);

}  // namespace scankit::probes
