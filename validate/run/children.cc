// SPDX-License-Identifier: Apache-2.0
#include "validate/run/children.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string_view>
#include <utility>

#include "doctor/base/embedded.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "validate/cases/data.h"

// The harness is embedded in the executable and
// written into a temporary directory for each run: scankit is one file, and installs nothing into
// the user's Python.
SCANKIT_EMBEDDED(scankit_harness);
extern "C" const char scankit_guard[], scankit_guard_end[];

namespace scankit::validate {
namespace {

// A start script in a directory of its own. Python puts the script's directory into sys.path[0], so that
// neither the current directory nor a name of the harness can shadow the user's modules: the package is
// the only other thing there.
constexpr std::string_view kStart = "from scankit_harness import main\nmain.main()\n";

}  // namespace

Result<Harness> write_harness(const std::string& directory) {
  const std::string package = path_join(directory, "scankit_harness");
  SCANKIT_CHECK(make_directories(package));
  const EmbeddedFiles files(SCANKIT_UNPACKED(scankit_harness));
  for (const auto& [name, content] : files.all())
    SCANKIT_CHECK(write_file_atomically(path_join(package, std::string(name)), content));
  Harness harness{path_join(directory, "scankit_harness_start.py"), path_join(package, "pytest_file.py"),
                  path_join(directory, "scankit_guard.so")};
  SCANKIT_CHECK(write_file_atomically(harness.script, kStart));
  SCANKIT_CHECK(write_file_atomically(
      harness.guard, {scankit_guard, static_cast<std::size_t>(scankit_guard_end - scankit_guard)}));
  return harness;
}

// How the children are started, and what their end means.

namespace {

// glibc 2.26 and newer read the tunable, older versions MALLOC_PERTURB_; other C libraries ignore both.
// malloc fills fresh memory with the complement of 128, 0x7f: NaN as fp16, 3.4e38 as fp32 and bf16. A
// result that the module never writes then shows. The thread cache is off because it skips the filling.
constexpr std::string_view kTunables = "glibc.malloc.perturb=128:glibc.malloc.tcache_count=0";

// The user's environment with malloc's settings; the user's own GLIBC_TUNABLES stay in front of them.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  std::string tunables(kTunables);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("GLIBC_TUNABLES=")) {
      tunables = std::string(text.substr(15)) + ":" + tunables;
    } else if (!text.starts_with("MALLOC_PERTURB_=")) {
      variables.emplace_back(text);
    }
  }
  variables.push_back("GLIBC_TUNABLES=" + tunables);
  variables.emplace_back("MALLOC_PERTURB_=128");
  variables.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  return variables;
}

std::string signal_name(int signal) {
  struct Name {
    int signal;
    const char* text;
  };
  static constexpr Name kNames[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},
                                    {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"}};
  for (const Name& name : kNames)
    if (name.signal == signal) return name.text;
  return say("signal {}", signal);
}

// What a child wrote is not echoed raw: at most 300 bytes, and no control characters.
std::string tame(std::string line) {
  line.resize(std::min<std::size_t>(line.size(), 300));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }, '?');
  return line;
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of("\r\n \t");
  if (end == std::string::npos) return "";
  const auto begin = text.find_last_of('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  return tame(text.substr(from, end + 1 - from));
}

}  // namespace

// -B and -u: no __pycache__ next to the user's modules, and no output lost in a buffer when
// the process dies.
ProcessRequest python_request(const std::string& python, const std::vector<std::string>& arguments,
                              std::chrono::milliseconds timeout) {
  ProcessRequest request;
  request.argv = {python, "-B", "-u"};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.environment = environment();
  request.timeout = timeout;
  request.capture_channel = true;
  return request;
}

void preload(ProcessRequest& request, const std::string& library) {
  constexpr std::string_view kName = "LD_PRELOAD=";
  if (library.find_first_of(": ") != std::string::npos) return;
  std::string entry = std::string(kName) + library;
  std::erase_if(*request.environment, [&](const std::string& variable) {
    if (!variable.starts_with(kName)) return false;
    if (variable.size() > kName.size()) entry += ":" + variable.substr(kName.size());
    return true;
  });
  request.environment->push_back(std::move(entry));
}

// faulthandler.dump_traceback_later(exit=True) prints "Timeout (0:01:00)!" and calls _exit(1).
bool ended_by_watchdog(const ProcessResult& result) {
  return result.timed_out ||
         (result.signal == 0 && result.exit_code == 1 && result.err.find("Timeout (") != std::string::npos);
}

// Reads the first frame of faulthandler's stack: `  File "/path/call.py", line 97 in forward`.
std::string where_it_was(const ProcessResult& result) {
  constexpr std::string_view kFrame = "\n  File \"";
  const auto frame = result.err.find(kFrame);
  if (frame == std::string::npos) return "";
  const std::string line =
      result.err.substr(frame + kFrame.size(), result.err.find('\n', frame + 1) - frame - kFrame.size());
  const auto quote = line.find('"');
  if (quote == std::string::npos) return "";
  return tame(line.substr(0, quote).substr(line.rfind('/', quote) + 1) + line.substr(quote + 1));
}

std::string describe_end(const ProcessResult& result) {
  if (result.timed_out) return say("the process exceeded its time limit and was stopped");
  if (result.signal != 0) {
    const std::string name = signal_name(result.signal), where = where_it_was(result);
    return where.empty() ? say("the process crashed with {}", name)
                         : say("the process crashed with {} at {}", name, where);
  }
  const std::string line = last_line(result.err);
  return line.empty() ? say("the process exited with status {}", result.exit_code)
                      : say("the process exited with status {}: {}", result.exit_code, line);
}

std::string why_python_does_not_work(const std::string& python) {
  const auto request =
      python_request(python, {"-c", "import os; os.write(3, b'ready')"}, std::chrono::milliseconds(20000));
  const auto result = run_process(request);
  if (!result) return tr(result.error().message);
  if (result->timed_out) return say("{} did not run a one-line script within 20 s", python);
  if (result->ok() && result->channel == "ready") return "";
  return say("{} cannot run a one-line script: {}", python, describe_end(*result));
}

namespace {

constexpr int kCrashesInARow = 5;  // each costs an import of torch; then the module has said enough

// How the child that died came to its end.
struct LostChild {
  const ChildStory& story;
  const ProcessResult& result;
  bool hung = false;  // the harness's own watchdog ended it
  std::string how;    // in one clause
};

// The phases of the harness's start in the user's language; anything else is the id of a case.
std::string phase_in_words(const std::string& what) {
  if (what.empty()) return say("start");
  if (what == "import torch") return say("import torch");
  return what == "import module" ? say("import module") : what;
}

// The watchdog prints the stack before it ends the process, so that the place is known.
LostChild lost_child(const Session& session, const ChildStory& story, const ProcessResult& result) {
  LostChild lost{story, result, ended_by_watchdog(result), {}};
  if (!lost.hung || result.timed_out) {
    lost.how = describe_end(result);
    return lost;
  }
  const auto seconds = session.request.each_case.count();
  const std::string where = where_it_was(result);
  lost.how = where.empty() ? say("the process hung and was stopped after {} s", seconds)
                           : say("the process hung and was stopped after {} s at {}", seconds, where);
  return lost;
}

CaseResult lost_case(const LostChild& lost) {
  CaseResult result;
  result.id = lost.story.started;
  result.device = lost.story.device;
  result.state = lost.hung ? CaseState::Hung : CaseState::Crashed;
  result.reasons = {lost.how};
  return result;
}

void without_against(Series& series) {
  series.against = false;
  std::erase_if(series.tasks, [](const Task& task) { return task.device.ends_with("@against"); });
  series.finished = series.tasks.empty();
}

// The child was in none of the tasks: at its start, or between two cases.
void blame_the_start(const Session& session, const LostChild& lost, Series& series) {
  const ChildStory& story = lost.story;
  if (series.guarded && story.cases_done == 0) {
    series.seen.notes.push_back(say("writes next to a result on the GPU are not detected: {}", lost.how));
    series.tasks.clear();
    series.finished = true;
    return;
  }
  if (story.cases_done > 0) return;  // left on purpose between two cases (a broken CUDA context)
  if (story.started == "import module" && story.device == "@against") {
    series.seen.against_problem = say("importing {}: {}", session.request.against, lost.how);
    without_against(series);
  } else if (story.started == "import module") {
    series.seen.module_problem = ModuleProblem::ImportFailed;
    series.seen.module_message = say("importing {}: {}", session.request.module, lost.how);
    series.finished = true;
  } else {
    series.seen.blocked = say("before the first case ({}) {}", phase_in_words(story.started), lost.how);
  }
}

// Finds out what a lost child was doing, blames that, and removes it from what the next child gets: a timing, the
// model, the import of a module, or one case. Many lost children in a row end the run.
void blame(const Session& session, const LostChild& lost, Series& series) {
  const ChildStory& story = lost.story;
  if (story.started == "timing") {
    series.seen.notes.push_back(say("no timing on {}: {}", story.device, describe_end(lost.result)));
    series.timing = false;
    series.finished = series.tasks.empty();
    return;
  }
  if (story.started.starts_with("model-")) {
    series.seen.cases.push_back(lost_case(lost));
    series.model = false;
    return;
  }
  const auto task = std::ranges::find_if(
      series.tasks, [&](const Task& t) { return t.what->id == story.started && t.device == story.device; });
  if (task == series.tasks.end()) return blame_the_start(session, lost, series);
  CaseResult result = lost_case(lost);
  if (lost.result.timed_out) result.state = CaseState::NotRun;
  series.seen.cases.push_back(std::move(result));
  series.tasks.erase(task);
  series.lost_in_a_row = story.cases_done > 0 ? 1 : series.lost_in_a_row + 1;
  if (series.lost_in_a_row >= kCrashesInARow)
    series.seen.blocked = say("stopped after {} lost processes in a row", series.lost_in_a_row);
}

// Removes what has a result. A device whose tensors the module refuses needs no further tasks.
void forget_done_tasks(Series& series) {
  std::set<std::pair<std::string, std::string>> done;
  for (const CaseResult& result : series.seen.cases) done.emplace(result.id, result.device);
  std::erase_if(series.tasks, [&](const Task& task) {
    const auto is_refused = [&](const auto& refused) { return refused.first == task.device; };
    return done.contains({task.what->id, task.device}) ||
           std::ranges::any_of(series.seen.refused, is_refused);
  });
}

// Without a GPU its tasks are dropped, with a note. Under --device cuda that leaves the run incomplete.
void drop_absent_devices(const Session& session, Series& series) {
  Validation& seen = series.seen;
  const auto dropped =
      std::erase_if(series.tasks, [&](const Task& task) { return is_absent(task.device, seen); });
  if (dropped == 0 || !seen.gpu_problem.empty() || !seen.blocked.empty()) return;
  if (session.request.require_cuda)
    seen.blocked = say("torch finds no CUDA device");
  else
    seen.notes.push_back(say("torch finds no CUDA device: only the CPU was validated"));
}

// Starts one child and waits for its end, then decides what is left to do.
void run_child(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(session.deadline - Clock::now());
  if (left.count() <= 0) {
    series.seen.blocked = say("stopped after {} s (--timeout)", session.request.total.count());
    return;
  }
  ChildStory story;
  std::string partial;  // the line of the channel that is not complete yet
  series.before_this_child = series.seen.cases.size();
  ProcessRequest process = python_request(session.request.python, {session.harness.script}, left);
  preload(process, session.harness.guard);
  process.standard_input = job_text(job(series));
  process.on_channel = [&](std::string_view piece) {
    partial += piece;
    const auto end = partial.rfind('\n');
    if (end != std::string::npos) {
      take_lines(std::string_view(partial).substr(0, end + 1), series.seen, story);
      partial.erase(0, end + 1);
    }
    on_news(story);
  };
  const auto result = run_process(process);
  if (!result) {
    series.seen.blocked = tr(result.error().message);
    return;
  }
  if (series.seen.left_out > 0)  // functions that the module does not have
    std::erase_if(series.tasks, [](const Task& task) { return task.what->stateful; });
  forget_done_tasks(series);
  if (story.without_bands) series.tasks.clear();
  if (story.ended) {
    drop_absent_devices(session, series);
    series.finished = true;
  } else {
    blame(session, lost_child(session, story, *result), series);
  }
}

}  // namespace

bool is_absent(const std::string& device, const Validation& seen) {
  return !on_cpu(device) && !seen.gpus.contains(device.substr(0, device.find_first_of("+@")));
}

void run_children(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news) {
  while (series.seen.blocked.empty() && !series.finished) run_child(session, series, job, on_news);
}

}  // namespace scankit::validate
