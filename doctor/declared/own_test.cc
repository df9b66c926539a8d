// SPDX-License-Identifier: Apache-2.0
#include "doctor/declared/own_test.h"

#include <algorithm>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"

extern "C" char** environ;

namespace scankit::declared {
namespace {

constexpr std::size_t kTestFileLimit = 4u << 20, kKeptBytes = 64u << 10, kKeptLines = 20, kLongestLine = 300;
// pytest's exit statuses: https://docs.pytest.org/en/stable/reference/exit-codes.html
constexpr int kInternalError = 3, kUsageError = 4, kNoTests = 5;

// With PYTHONINSPECT a script that fails would end as if it had not.
std::vector<std::string> variables_of_test() {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("PYTHONINSPECT=")) kept.emplace_back(*variable);
  return kept;
}

// The end of what a test prints, from both streams as it comes.
class Tail {
 public:
  void add(std::string_view piece) {
    text_ += piece;
    if (text_.size() > 2 * kKeptBytes) text_.erase(0, text_.size() - kKeptBytes);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const std::string_view line : lines_of(text_))
      if (!trimmed(line).empty()) all.push_back(printable(line.substr(0, kLongestLine)));
    if (all.size() > kKeptLines) all.erase(all.begin(), all.end() - kKeptLines);
    return all;
  }

 private:
  std::string text_;
};

bool imports_pytest(const std::string& python) {
  ProcessRequest request;
  request.argv = {python, "-B", "-c", "import pytest"};
  request.environment = variables_of_test();
  request.working_directory = "/";
  const auto ran = run_process(request);
  return ran && ran->ok();
}

void judge(const ProcessResult& ended, TestRun& run) {
  const bool by_pytest = run.by == "pytest";
  const std::string last = run.lines.empty() ? "" : run.lines.back();
  if (ended.ok()) {
    run.state = TestState::Passed;
  } else if (ended.timed_out) {
    run.state = TestState::Hung;
    run.why = say("it exceeded its time limit of {} s", ended.duration.count() / 1000);
  } else if (ended.signal != 0) {
    run.state = TestState::Crashed;
    run.why = say("it was killed by signal {} ({})", ended.signal, ::strsignal(ended.signal));
  } else if (by_pytest && ended.exit_code == kNoTests) {
    run.why = say("pytest found no test in it");
  } else if (by_pytest && (ended.exit_code == kInternalError || ended.exit_code == kUsageError)) {
    run.why = say("pytest ended with status {}: {}", ended.exit_code, last);
  } else {
    run.state = TestState::Failed;
    run.why = last.empty() ? say("it exited with status {}", ended.exit_code) : last;
  }
}

}  // namespace

std::string_view word_of(TestState state) {
  switch (state) {
    case TestState::NotRun:
      return "not_run";
    case TestState::Passed:
      return "passed";
    case TestState::Failed:
      return "failed";
    case TestState::Crashed:
      return "crashed";
    case TestState::Hung:
      return "hung";
  }
  return "";
}

bool is_pytest_file(const std::string& name, std::string_view text) {
  if (name.starts_with("test_") || name.ends_with("_test.py")) return true;
  return std::ranges::any_of(lines_of(text), [](std::string_view line) {
    return line.starts_with("def test_") || line.starts_with("async def test_") ||
           line.starts_with("class Test");
  });
}

Result<std::string> own_test_file(const Host& host, const std::string& option, const std::string& file) {
  const auto real = host.realpath(path_join(current_directory(), file));
  if (!real)
    return Error{Errc::InvalidArgument, message("{} {}: {}", option, printable(file), real.error().message),
                 message("give a Python file")};
  const auto info = host.stat(*real);
  if (info && info->kind == FileKind::Regular && real->ends_with(".py")) return *real;
  return Error{Errc::InvalidArgument,
               message("{} {}: it is not a Python file, NAME.py", option, printable(file)),
               message("give a script, or a file of pytest's")};
}

TestRun run_own_test(const std::string& python, const std::string& file, std::chrono::seconds limit,
                     const std::function<void(std::string_view)>& on_output) {
  TestRun run;
  const auto text = make_real_host()->read_file(file, kTestFileLimit);
  if (!text) {
    run.why = tr(text.error().message);
    return run;
  }
  run.by = "python";
  const bool runs_itself = text->find("__main__") != std::string::npos;
  if (is_pytest_file(path_basename(file), *text)) {
    if (imports_pytest(python)) {
      run.by = "pytest";
    } else if (!runs_itself) {
      run.why = say("its functions are called by pytest, and {} cannot import pytest", python);
      return run;
    }
  }
  Tail tail;
  ProcessRequest request;
  request.argv = {python, "-B", "-u"};
  if (run.by == "pytest")
    request.argv.insert(request.argv.end(), {"-m", "pytest", "-q", "-p", "no:cacheprovider"});
  request.argv.push_back(file);
  request.environment = variables_of_test();
  request.working_directory = path_dirname(file);
  request.timeout = limit;
  request.output_limit = 0;
  request.end_descendants = true;
  request.on_out = request.on_err = [&](std::string_view piece) {
    tail.add(piece);
    if (on_output) on_output(piece);
  };
  const auto ended = run_process(request);
  run.lines = tail.lines();
  if (!ended) {
    run.why = tr(ended.error().message);
    return run;
  }
  run.seconds = static_cast<double>(ended->duration.count()) / 1000;
  judge(*ended, run);
  return run;
}

std::string in_words(const TestRun& run) {
  switch (run.state) {
    case TestState::NotRun:
      return say("was not run: {}", run.why);
    case TestState::Passed:
      return say("passed (by {}, {:.1f} s)", run.by, run.seconds);
    case TestState::Failed:
      return say("failed (by {}, {:.1f} s): {}", run.by, run.seconds, run.why);
    case TestState::Crashed:
      return say("crashed (by {}, {:.1f} s): {}", run.by, run.seconds, run.why);
    case TestState::Hung:
      return say("did not end (by {}): {}", run.by, run.why);
  }
  return "";
}

}  // namespace scankit::declared
