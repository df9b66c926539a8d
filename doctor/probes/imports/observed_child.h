// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/model/snapshot.h"

namespace scankit {

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
  std::string why_not;   // not started: one line
  std::string outcome;   // not started: "timeout", "crashed" or "error" of the interpreter itself
  int signal = 0;
  std::int64_t duration_ms = 0;
  std::vector<Observation> imports;
};

// `begins` hears the name of each module when its import begins, from this thread; it may be empty.
ChildAnswer import_in_child(const std::string& python, const std::vector<std::string>& modules,
                            std::chrono::milliseconds timeout,
                            const std::function<void(const std::string& module)>& begins = {});
// The same from a finished process; for tests.
ChildAnswer read_child(const std::string& python, const ProcessResult& process);

// The environment of such a child: the user's, since PYTHONPATH and the loader's variables are part of the
// question, without what makes Python run or print other things, and without the leave to write .pyc files.
std::vector<std::string> child_environment(const char* const* variables);

}  // namespace scankit
