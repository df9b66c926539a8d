// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/imports/observed_program.h"

extern "C" char** environ;

namespace scankit::probes {
namespace {

struct Call {
  long number;
  std::string_view name;
  bool on_descriptor;  // the first argument is one
};
constexpr std::array kCalls{
    Call{SYS_read, "read", true},
    Call{SYS_pread64, "pread", true},
    Call{SYS_write, "write", true},
    Call{SYS_ioctl, "ioctl", true},
    Call{SYS_flock, "flock", true},
    Call{SYS_fcntl, "fcntl", true},
    Call{SYS_recvfrom, "recvfrom", true},
    Call{SYS_connect, "connect", true},
    Call{SYS_openat, "openat", false},
    Call{SYS_futex, "futex", false},
    Call{SYS_ppoll, "ppoll", false},
    Call{SYS_wait4, "wait4", false},
    Call{SYS_nanosleep, "nanosleep", false},
    Call{SYS_clock_nanosleep, "clock_nanosleep", false},
#ifdef SYS_poll
    Call{SYS_poll, "poll", false},
    Call{SYS_select, "select", false},
#endif
};

std::string first_word_of_file(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

std::string link_target(const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace

// Reading /proc/PID/syscall needs permission to trace the process (proc(5)); without it the answer is that
// of wchan, or empty.
std::string kernel_wait(int pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  std::ifstream in(proc + "/syscall");  // "73 0x3 0x6 ..." while it waits, "running" else
  std::string number, argument;
  in >> number >> argument;
  const auto call =
      std::ranges::find_if(kCalls, [&](const Call& c) { return std::to_string(c.number) == number; });
  if (call != kCalls.end()) {
    std::string text(call->name);
    if (!call->on_descriptor) return text;
    const auto descriptor = std::strtoul(argument.c_str(), nullptr, 16);
    const std::string file = link_target(proc + "/fd/" + std::to_string(descriptor));
    return file.empty() ? text : english(message("{} on {}", text, file));
  }
  if (number == "running") return "nothing (it is using the CPU)";
  const std::string channel = first_word_of_file(proc + "/wchan");
  return channel == "0" ? "" : channel;
}

HangWatch::HangWatch(std::chrono::milliseconds timeout)
    : thread_([this, timeout] { watch(timeout - std::min(timeout / 5, std::chrono::milliseconds(500))); }) {}

void HangWatch::channel(std::string_view bytes) {
  const std::lock_guard guard(lock_);
  if (first_line_.find('\n') == std::string::npos) first_line_.append(bytes.substr(0, 400));
}

std::string HangWatch::finish() {
  {
    const std::lock_guard guard(lock_);
    ended_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
  return seen_;
}

void HangWatch::watch(std::chrono::milliseconds node_deadline) {
  std::unique_lock guard(lock_);
  if (over_.wait_for(guard, node_deadline, [this] { return ended_; })) return;
  constexpr std::string_view kKey = "\"pid\": ";  // json.dumps writes it so
  const auto at = first_line_.find(kKey);
  if (at == std::string::npos) return;
  const long pid = std::strtol(first_line_.c_str() + at + kKey.size(), nullptr, 10);
  if (pid > 0) seen_ = kernel_wait(static_cast<int>(pid));
}

namespace {
using Json = nlohmann::json;

// Variables that make Python print, stop or write. child_environment() sets PYTHONDONTWRITEBYTECODE itself.
constexpr std::array<std::string_view, 9> kDropped{
    "PYTHONSTARTUP=",     "PYTHONINSPECT=",           "PYTHONVERBOSE=",
    "PYTHONDEBUG=",       "PYTHONPROFILEIMPORTTIME=", "PYTHONDUMPREFS=",
    "PYTHONTRACEMALLOC=", "PYTHONBREAKPOINT=",        "PYTHONDONTWRITEBYTECODE="};

std::vector<std::string> texts_of(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto found = json.find(key);
  if (found != json.end() && found->is_array())
    for (const Json& each : *found)
      if (each.is_string()) texts.push_back(each.get<std::string>());
  return texts;
}

// The first line of `text` that starts with `prefix`, or the
// last one that is not empty where the prefix is "".
std::string pick_line(const std::string& text, std::string_view prefix) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!prefix.empty() && line.starts_with(prefix)) return line;
    if (prefix.empty() && !line.empty()) last = line;
  }
  return last.substr(0, 400);
}

// sigabbrev_np is glibc's (2.32), without "SIG" and never translated.
std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? english(message("signal {}", number)) : std::string("SIG") + name;
}

// faulthandler writes the innermost frame first, right below "(most recent call first)". The import
// machinery's own frames, and our program's, tell nothing: the innermost line of somebody's file does.
std::string where_it_stood(const std::string& stderr_text) {
  const auto at = stderr_text.find("(most recent call first)");
  if (at == std::string::npos) return "";
  std::istringstream lines(stderr_text.substr(at));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  File \"") && !line.starts_with("  File \"<") &&
        line.find("/importlib/__init__.py\"") == std::string::npos)
      return line;
  return "";
}

// `  File "/a/b.py", line 20 in <module>` -> "/a/b.py:20".
std::string place_of(const std::string& frame) {
  const auto from = frame.find('"'), to = frame.rfind('"'), line = frame.find(", line ", to);
  if (from == std::string::npos || to <= from || line == std::string::npos) return "";
  const auto digits = line + 7;
  return frame.substr(from + 1, to - from - 1) + ":" +
         frame.substr(digits, frame.find_first_not_of("0123456789", digits) - digits);
}

// Describes the import that was running when the process ended.
void end_of_process(const ProcessResult& process, Observation& unfinished) {
  unfinished.duration_ms = process.duration.count();
  if (process.timed_out) {
    unfinished.outcome = "timeout";
    const std::string frame = where_it_stood(process.err);
    unfinished.raised_at = place_of(frame);
    if (!frame.empty()) unfinished.message = message("it is waiting in {}", frame.substr(2));
    return;
  }
  unfinished.outcome = "crashed";
  unfinished.signal = process.signal;
  unfinished.raised_at = place_of(where_it_stood(process.err));
  unfinished.message = process.signal != 0
                           ? Message(signal_name(process.signal))
                           : message("it ended the interpreter with status {}", process.exit_code);
}

// sitecustomize.py, a .pth line or the interpreter itself: our program did not come to run.
void not_started(const std::string& python, const ProcessResult& process, ChildAnswer& answer) {
  answer.outcome = process.timed_out ? "timeout" : process.signal != 0 ? "crashed" : "error";
  answer.signal = process.signal;
  answer.duration_ms = process.duration.count();
  if (process.timed_out)
    answer.why_not =
        message("{} does not start: no output within {} s", python, (process.duration.count() + 500) / 1000);
  else if (process.signal != 0)
    answer.why_not = message("{} does not start: it was killed by {}", python, signal_name(process.signal));
  else
    answer.why_not = message("{} does not start: it exited with status {} and did not run the test program",
                             python, process.exit_code);
  if (const std::string line = pick_line(process.err, ""); !line.empty())
    answer.why_not = message("{} ({})", answer.why_not, line);
}

// One line of the channel. A "begin" without its "end" is an import that took the process with it.
void take(const Json& event, ChildAnswer& answer) {
  const std::string kind = json_text(event, "event");
  if (kind == "start") answer.started = true;
  if (kind == "begin") answer.imports.push_back({.module = json_text(event, "module")});
  if (kind != "end" || answer.imports.empty()) return;
  Observation& seen = answer.imports.back();
  seen.outcome = json_text(event, "outcome");
  seen.exception = json_text(event, "exception");
  seen.message = json_text(event, "message");
  seen.file = json_text(event, "file");
  if (const std::string module = json_text(event, "gil"); !module.empty() && seen.outcome == "ok")
    seen.message = message(
        "the GIL of this free-threaded Python is on since then, because {} does not declare that it runs "
        "without one",
        module);
  seen.missing = json_text(event, "missing");
  seen.raised_at = json_text(event, "raised_at");
  seen.raised_through = texts_of(event, "raised_through");
  seen.signatures = texts_of(event, "signatures");
  seen.lacks = texts_of(event, "lacks");
  if (const auto ms = event.find("ms"); ms != event.end() && ms->is_number_integer())
    seen.duration_ms = ms->get<std::int64_t>();
}

// A line that is not a JSON object is ignored: code of sitecustomize.py runs before ours and has
// descriptor 3.
void tell_begin(const std::string& line, const std::function<void(const std::string&)>& begins) {
  const Json event = parse_json_or_discard<Json>(line);
  if (event.is_object() && json_text(event, "event") == "begin") begins(json_text(event, "module"));
}

}  // namespace

std::vector<std::string> child_environment(const char* const* variables) {
  std::vector<std::string> kept;
  for (; *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    if (std::ranges::none_of(kDropped, [&](std::string_view name) { return variable.starts_with(name); }))
      kept.emplace_back(variable);
  }
  kept.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  return kept;
}

// An import without an outcome is the one that was running when the process ended.
ChildAnswer read_child(const std::string& python, const ProcessResult& process) {
  ChildAnswer answer;
  std::istringstream lines(process.channel);
  for (std::string line; std::getline(lines, line);) {
    const Json event = parse_json_or_discard<Json>(line);
    if (event.is_object()) take(event, answer);
  }
  if (answer.imports.empty()) not_started(python, process, answer);
  if (!answer.imports.empty() && answer.imports.back().outcome.empty())
    end_of_process(process, answer.imports.back());
  return answer;
}

ChildAnswer import_in_child(const std::string& python, const std::vector<std::string>& modules,
                            std::chrono::milliseconds timeout,
                            const std::function<void(const std::string& module)>& begins, bool apart) {
  // faulthandler writes its stack before our clock ends, while somebody
  // still reads it: a point in time and not a duration, since Python needs a
  // while to start where a machine is busy. Both clocks are CLOCK_MONOTONIC.
  const auto dump_at =
      std::chrono::steady_clock::now() + std::max(std::chrono::milliseconds(200), timeout * 9 / 10);
  const double seconds = std::chrono::duration<double>(dump_at.time_since_epoch()).count();
  ProcessRequest request;
  request.argv = {python, "-c", kImportProgram, std::to_string(seconds), apart ? "apart" : "here"};
  request.argv.insert(request.argv.end(), modules.begin(), modules.end());
  request.environment = child_environment(environ);
  request.timeout = timeout;
  request.end_descendants = true;  // an import may start a daemon, which nobody asked for
  request.capture_channel = true;
  HangWatch watch(timeout);
  std::string partial;
  request.on_channel = [&](std::string_view bytes) {
    watch.channel(bytes);
    // A piece may end inside a line.
    partial += bytes;
    for (std::size_t end; (end = partial.find('\n')) != std::string::npos; partial.erase(0, end + 1))
      if (begins) tell_begin(partial.substr(0, end), begins);
  };
  const auto process = run_process(request);
  const std::string waits_for = watch.finish();
  if (!process) return {.why_not = process.error().message};
  ChildAnswer answer = read_child(python, *process);
  if (!answer.imports.empty() && answer.imports.back().outcome == "timeout" && !waits_for.empty()) {
    Message& how = answer.imports.back().message;
    how = clauses_of({how, message("in the kernel: {}", waits_for)});
  }
  return answer;
}

}  // namespace scankit::probes
