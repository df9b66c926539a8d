// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/files.h"
#include "doctor/base/result.h"

namespace scankit {

// Serialises the processes that change one environment. The kernel releases the lock when its last holder
// dies: the descriptor is inherited by installers, so the lock outlives a scankit that is killed.
class Lock {
 public:
  // Errc::Conflict if another process has the lock; the message has that process's id.
  static Result<Lock> take(const std::string& folder);
  int descriptor() const { return fd_.get(); }  // a child that inherits it holds the lock too
  // Releases the lock and removes the lock file, and the directory if nothing else is in it. For a run that
  // changed nothing in an environment that had no .scankit before.
  void leave_no_trace() &&;

 private:
  Lock(Descriptor fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  Descriptor fd_;
  std::string folder_;
};

// While an object lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process, so that a change
// can be undone first. One object at a time: the state is global, as signal handlers are.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();
  static int signal();  // 0: none came
  // Errc::Conflict once a signal has come.
  static Result<void> check();
};

}  // namespace scankit
