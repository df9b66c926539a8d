// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

// A test of the maintainer's own: a Python file, run in the environment's interpreter as its user would run it.
namespace scankit::declared {

// NotRun: pytest is needed and cannot be imported, found no test, or skipped all of them; or the run was stopped before
// its end. An import error in the file is Failed.
enum class TestState : std::uint8_t { NotRun, Passed, Failed, Crashed, Hung };
std::string_view word_of(TestState state);  // "not_run", "passed", ...; for programs

struct TestRun {
  TestState state = TestState::NotRun;
  std::string by;  // "pytest", or "python"
  double seconds = 0;
  Message why;                     // how it ended, in one clause; empty where it passed
  std::vector<std::string> lines;  // the last of its output, fit for a terminal
};

// The absolute path of an existing Python file. `option` is what messages call it: "--test".
Result<std::string> own_test_file(const Host& host, const std::string& option, const std::string& file);

// Runs the file in its own directory: by pytest if it is a file of pytest's, else as `python FILE`. A file of pytest's
// without pytest is not run, since its functions would not be called. `on_output` gets what it prints as it comes, and
// `stop` is asked whether to end it, and all that it has started, before its time.
TestRun run_own_test(const std::string& python, const std::string& file, std::chrono::seconds limit,
                     const std::function<void(std::string_view)>& on_output,
                     const std::function<bool()>& stop = {});

// "passed (pytest, 1.2 s)", "failed (python, 0.1 s): AssertionError".
std::string in_words(const TestRun& run);

// By its name, test_*.py or *_test.py, or by functions and classes that only pytest calls.
bool is_pytest_file(const std::string& name, std::string_view text);

}  // namespace scankit::declared
