// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "doctor/base/result.h"
#include "doctor/model/failure.h"
#include "doctor/model/snapshot.h"

namespace scankit::logs {

// Reads a log piece by piece and says what it shows. Memory does not grow with the log. After finish()
// the object is spent.
class Explainer {
 public:
  Explainer();
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;
  void feed(std::string_view bytes);
  Log finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Log explain_text(std::string_view text);
// Reads a file, or "-" for standard input. An empty log is an Error, because a pipe without 2>&1 is
// the usual reason.
Result<Log> explain_log(const std::string& path);

// Reads the messages of the imports that failed with the rules for logs, and stores the answer in each
// observation. A check uses it if the files explain nothing: for a library that no table knows, or behind
// a loader that could not be followed.
void read_observations(Snapshot& snapshot);

}  // namespace scankit::logs
