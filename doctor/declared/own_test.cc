// SPDX-License-Identifier: Apache-2.0
#include "doctor/declared/own_test.h"

#include <algorithm>
#include <array>
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

// The end of what a test prints, in whole lines: each stream comes in pieces, and a line of one may begin between two
// pieces of a line of the other.
class Tail {
 public:
  enum Stream : std::uint8_t { Out, Err };
  void add(Stream stream, std::string_view piece) {
    std::string& begun = begun_[stream];
    begun += piece;
    const auto end = begun.rfind('\n');
    if (end != std::string::npos) {
      text_.append(begun, 0, end + 1);
      begun.erase(0, end + 1);
    }
    for (std::string* kept : {&text_, &begun})
      if (kept->size() > 2 * kKeptBytes) kept->erase(0, kept->size() - kKeptBytes);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const std::string& part : {text_, begun_[Out], begun_[Err]})
      for (const std::string_view line : lines_of(part))
        if (!trimmed(line).empty()) all.push_back(printable(line.substr(0, kLongestLine)));
    if (all.size() > kKeptLines) all.erase(all.begin(), all.end() - kKeptLines);
    return all;
  }

 private:
  std::string text_;
  std::array<std::string, 2> begun_;  // what has no end of line yet
};

// pytest's command, with the one difference that a file whose tests were all skipped ends as one without a test does:
// pytest calls both a success, and nothing was looked at. An expected failure (xfail) has run.
constexpr const char* kPytest = R"(
import sys
import pytest
class Ran:
    any = False
    def pytest_runtest_logreport(self, report):
        self.any = self.any or (report.when == 'call' and (report.passed or hasattr(report, 'wasxfail')))
ran = Ran()
status = pytest.main(sys.argv[1:], plugins=[ran])
sys.exit(5 if status == 0 and not ran.any else status)
)";

// "if __name__ == ...": the file calls its tests by itself. The word in a comment does not.
bool runs_itself(std::string_view text) {
  return std::ranges::any_of(lines_of(text),
                             [](std::string_view line) { return line.starts_with("if __name__"); });
}

bool imports_pytest(const std::string& python, const std::function<bool()>& stop) {
  ProcessRequest request;
  request.argv = {python, "-B", "-c", "import pytest"};
  request.environment = variables_of_test();
  request.working_directory = "/";
  request.stop = stop;
  const auto ran = run_process(request);
  return ran && ran->ok();
}

void judge(const ProcessResult& ended, TestRun& run) {
  const bool by_pytest = run.by == "pytest";
  const std::string last = run.lines.empty() ? "" : run.lines.back();
  if (ended.ok()) {
    run.state = TestState::Passed;
  } else if (ended.stopped) {
    run.why = message("it was stopped before its end");
  } else if (ended.timed_out) {
    run.state = TestState::Hung;
    run.why = message("it exceeded its time limit of {} s", ended.duration.count() / 1000);
  } else if (ended.signal != 0) {
    run.state = TestState::Crashed;
    run.why = message("it was killed by signal {} ({})", ended.signal, ::strsignal(ended.signal));
  } else if (by_pytest && ended.exit_code == kNoTests) {
    run.why = message("pytest ran no test in it: {}", last.empty() ? message("it has none") : Message(last));
  } else if (by_pytest && (ended.exit_code == kInternalError || ended.exit_code == kUsageError)) {
    run.why = message("pytest ended with status {}: {}", ended.exit_code, last);
  } else {
    run.state = TestState::Failed;
    run.why = last.empty() ? message("it exited with status {}", ended.exit_code) : Message(last);
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
                     const std::function<void(std::string_view)>& on_output,
                     const std::function<bool()>& stop) {
  TestRun run;
  const auto text = make_real_host()->read_file(file, kTestFileLimit);
  if (!text) {
    run.why = text.error().message;
    return run;
  }
  run.by = "python";
  if (is_pytest_file(path_basename(file), *text)) {
    if (imports_pytest(python, stop)) {
      run.by = "pytest";
    } else if (!runs_itself(*text)) {
      run.why =
          message("it contains pytest tests, and {} cannot import pytest: install pytest there", python);
      return run;
    }
  }
  Tail tail;
  ProcessRequest request;
  request.argv = {python, "-B", "-u"};
  if (run.by == "pytest")
    request.argv.insert(request.argv.end(), {"-c", kPytest, "-q", "-p", "no:cacheprovider"});
  request.argv.push_back(file);
  request.environment = variables_of_test();
  request.working_directory = path_dirname(file);
  request.timeout = limit;
  request.output_limit = 0;
  request.end_descendants = true;
  request.stop = stop;
  const auto from = [&](Tail::Stream stream) {
    return [&tail, &on_output, stream](std::string_view piece) {
      tail.add(stream, piece);
      if (on_output) on_output(piece);
    };
  };
  request.on_out = from(Tail::Out);
  request.on_err = from(Tail::Err);
  const auto ended = run_process(request);
  run.lines = tail.lines();
  if (!ended) {
    run.why = ended.error().message;
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
      return say("passed ({}, {:.1f} s)", run.by, run.seconds);
    case TestState::Failed:
      return say("failed ({}, {:.1f} s): {}", run.by, run.seconds, run.why);
    case TestState::Crashed:
      return say("crashed ({}, {:.1f} s): {}", run.by, run.seconds, run.why);
    case TestState::Hung:
      return say("timed out ({}): {}", run.by, run.why);
  }
  return "";
}

}  // namespace scankit::declared
