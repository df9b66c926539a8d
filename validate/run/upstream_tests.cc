// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "validate/run/children.h"

// Runs upstream's own test file, as one case, optionally with the values that the file only
// has in comments.
namespace scankit::validate {
namespace {

constexpr std::size_t kPytestFailuresShown = 8;
constexpr int kSomeFailed = 1;  // pytest's exit statuses; 5: it found no test

// "FAILED file::test - why", and the line with the counts, which is the last.
std::vector<std::string> pytest_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::string last;
  for (const auto whole : lines_of(text)) {
    const std::string line(whole.substr(0, 300));
    if ((line.starts_with("FAILED ") || line.starts_with("ERROR ")) && lines.size() < kPytestFailuresShown)
      lines.push_back(line);
    if (!line.empty()) last = line;
  }
  if (!last.empty() && (lines.empty() || lines.back() != last)) lines.push_back(last);
  return lines;
}

// One decorator of one line, in use or commented out.
struct Parametrize {
  bool comment = false;
  std::string name, values;
};

// Only decorators of one line with a literal list. Anything else stays as it is.
std::optional<Parametrize> parametrize_of(const std::string& line) {
  static const RE2 form(R"(^(#\s*)?@pytest\.mark\.parametrize\(\s*(['"])(\w+)['"]\s*,\s*(\[.*\])\s*\)\s*$)");
  Parametrize found;
  std::string comment, quote;
  if (!RE2::FullMatch(line, form, &comment, &quote, &found.name, &found.values)) return std::nullopt;
  found.comment = !comment.empty();
  return found;
}

// The lines [begin, end) are the decorators and comments above one function. dict.fromkeys() removes
// repeated values and keeps their order.
void enable(std::vector<std::string>& lines, std::size_t begin, std::size_t end, int& enabled) {
  std::map<std::string, std::string> commented;
  std::map<std::string, int> count;
  for (std::size_t i = begin; i < end; ++i)
    if (const auto found = parametrize_of(lines[i]); found && found->comment) {
      commented[found->name] += " + " + found->values;
      ++count[found->name];
    }
  for (std::size_t i = begin; i < end; ++i) {
    const auto found = parametrize_of(lines[i]);
    if (!found || found->comment || !commented.contains(found->name)) continue;
    const std::string all = "list(dict.fromkeys(" + found->values + commented[found->name] + "))";
    lines[i] = "@pytest.mark.parametrize('" + found->name + "'," + all + ")";
    enabled += count[found->name];
  }
}

bool is_decorator_or_comment(const std::string& line) {
  return line.starts_with('@') || line.starts_with('#');
}

struct TestFile {
  std::optional<TemporaryDirectory> scratch;  // holds `path` where values were added
  std::string path, problem;
};

// The file to run: the user's own, or a copy with more values. A file that mentions "cuda" is not run
// without a GPU, where each of its tests would fail.
TestFile choose_test_file(const ValidateRequest& request, Validation& seen) {
  TestFile file;
  file.path = request.upstream_tests;
  const auto source = read_whole_file(file.path, 4u << 20);
  if (!source) {
    file.problem = tr(source.error().message);
    return file;
  }
  static const RE2 gpu(R"((['"])cuda(:\d+)?['"])");
  if (seen.gpu.empty() && RE2::PartialMatch(*source, gpu))
    file.problem = say("{} computes on a GPU, and torch finds none", file.path);
  if (!request.commented_parameters || !file.problem.empty()) return file;
  int enabled = 0;
  const std::string more = with_commented_parameters(*source, enabled);
  auto scratch = TemporaryDirectory::create("scankit-validate");
  if (!scratch) {
    file.problem = tr(scratch.error().message);
    return file;
  }
  file.scratch.emplace(std::move(*scratch));
  file.path = path_join(file.scratch->path(), path_basename(request.upstream_tests));
  if (const auto written = write_file_atomically(file.path, more); !written)
    file.problem = tr(written.error().message);
  seen.notes.push_back(say("{}: the values of {} decorators that are commented out there were added",
                           request.upstream_tests, enabled));
  return file;
}

// What harness/pytest_file.py reports on its channel: "DONE TOTAL" after each test, and "left N"
// at the end.
struct Heard {
  std::size_t done = 0, total = 0, left = 0;
  std::string partial;

  // True where a test has ended.
  bool take(std::string_view piece) {
    static const RE2 test(R"((\d+) (\d+))"), rest(R"(left (\d+))");
    bool ended = false;
    partial += piece;
    for (std::size_t end; (end = partial.find('\n')) != std::string::npos; partial.erase(0, end + 1)) {
      const std::string line = partial.substr(0, end);  // RE2 of Debian 13 takes no std::string_view
      ended |= RE2::FullMatch(line, test, &done, &total);
      RE2::FullMatch(line, rest, &left);
    }
    return ended;
  }
};

// Only pytest's own statement that tests failed counts as Failed. Every other end, such as an import error
// in the test file, is no judgement of the module and leaves the case NotRun or Crashed.
void judge_pytest(const ProcessResult& result, const ValidateRequest& request, CaseResult& c,
                  std::vector<std::string>& notes) {
  c.seconds = static_cast<double>(result.duration.count()) / 1000;
  if (result.ok()) {
    c.state = CaseState::Passed;
    const auto words = pytest_lines(result.out);
    if (!words.empty()) notes.push_back(say("{}: {}", request.upstream_tests, words.back()));
  } else if (result.signal == 0 && !result.timed_out && result.exit_code == kSomeFailed &&
             result.out.find("FAILED ") != std::string::npos) {
    c.state = CaseState::Failed;
    c.reasons = pytest_lines(result.out);
  } else {
    c.reasons = {result.out.empty() ? describe_end(result) : pytest_lines(result.out).back()};
    if (result.signal != 0) c.state = CaseState::Crashed;
  }
}

}  // namespace

std::string with_commented_parameters(std::string_view source, int& enabled) {
  std::vector<std::string> lines;
  for (const auto line : lines_of(source)) lines.emplace_back(line);
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i;
    while (end < lines.size() && is_decorator_or_comment(lines[end])) ++end;
    if (end < lines.size() && lines[end].starts_with("def ")) enable(lines, i, end, enabled);
    i = end + 1;
  }
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

void run_upstream_tests(const ValidateRequest& request, const Harness& harness, double seconds,
                        Validation& seen) {
  CaseResult c;
  c.id = "upstream-tests";
  c.device = seen.gpu.empty() ? "cpu" : "cuda:0";  // by its own choice
  const TestFile file = choose_test_file(request, seen);
  if (!file.problem.empty()) {
    c.reasons = {file.problem};
    seen.cases.push_back(std::move(c));
    return;
  }
  // 0 keeps the file's own order.
  const std::uint64_t seed = request.commented_parameters ? request.seed : 0;
  constexpr double kOneTest = 60;  // the time is looked at between two tests
  ProcessRequest process = python_request(
      request.python, {harness.pytest_file, file.path, std::to_string(seconds), std::to_string(seed)},
      std::chrono::milliseconds(static_cast<std::int64_t>((seconds + kOneTest) * 1000)));
  Heard heard;
  process.on_channel = [&](std::string_view piece) {
    if (heard.take(piece) && request.progress)
      request.progress({heard.done, heard.total, path_basename(request.upstream_tests), ""});
  };
  const auto result = run_process(process);
  if (result)
    judge_pytest(*result, request, c, seen.notes);
  else
    c.reasons = {tr(result.error().message)};
  if (heard.left > 0)
    seen.notes.push_back(say_n(heard.left,
                               "{}: {} test of {} was not run: the time limit was reached (--timeout sets a "
                               "longer one)",
                               "{}: {} tests of {} were not run: the time limit was reached (--timeout sets "
                               "a longer one)",
                               request.upstream_tests, heard.left, heard.total));
  seen.cases.push_back(std::move(c));
}

}  // namespace scankit::validate
