// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>

#include "validate/run.h"

namespace scankit::validate {

// A case is its own name; a phase of the harness's start is said.
std::string phase_in_words(const std::string& what);

// On standard error: a bar that is redrawn where that is a terminal, else a line at each quarter.
class ProgressPrinter {
 public:
  ProgressPrinter();
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;
  void show(const Progress& progress);

 private:
  bool terminal_;
  bool drawn_ = false;
  std::size_t quarter_ = 0;
  std::string phase_;
};

}  // namespace scankit::validate
