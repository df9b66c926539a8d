// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/base/result.h"

namespace scankit {

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
