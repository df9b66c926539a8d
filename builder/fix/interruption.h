// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/base/result.h"

namespace scankit {

// While it lives, Ctrl-C, a hang-up and a polite kill are noted in place of ending the process, so that a
// change can be undone first.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();
  static int signal();  // 0: none came
  static Result<void> check();
};

}  // namespace scankit
