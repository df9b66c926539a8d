// SPDX-License-Identifier: Apache-2.0
// Turns the end of a compiler into a sentence and a next step: a signal, a timeout, want of memory, or the
// errors in its log. Nothing here runs a compiler.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "builder/compile/compile.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::compile {
namespace {

constexpr std::size_t kLines = 30, kLineLength = 400;

// The number that follows the word, in text of blank-separated pairs.
std::optional<std::uint64_t> number_after(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string name, value; words >> name;)
    if (name == word && words >> value) return std::strtoull(value.c_str(), nullptr, 10);
  return std::nullopt;
}

// The kill counter of our control group: oom_kill in memory.events (v2) or in memory.oom_control (v1). A line
// of /proc/self/cgroup is "0::/job" for v2 and "4:memory:/job" for v1 (cgroups(7), the kernel's admin-guide).
std::optional<std::uint64_t> kills_of_group() {
  const auto groups = read_whole_file("/proc/self/cgroup");
  if (!groups) return std::nullopt;
  std::istringstream lines(*groups);
  for (std::string line; std::getline(lines, line);) {
    const auto path = line.find(":/");
    if (path == std::string::npos) continue;
    const bool v1 = line.find(":memory:") != std::string::npos;
    if (!v1 && !line.starts_with("0::")) continue;
    const std::string file = v1 ? "/sys/fs/cgroup/memory" + line.substr(path + 1) + "/memory.oom_control"
                                : "/sys/fs/cgroup" + line.substr(path + 1) + "/memory.events";
    if (const auto text = read_whole_file(file))
      if (const auto kills = number_after(*text, "oom_kill")) return kills;
  }
  return std::nullopt;
}

// False if either could not be read: an unknown counter proves nothing.
bool rose(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after) {
  return before && after && *after > *before;
}

std::string signal_name(int number) {
  constexpr std::array<std::pair<int, const char*>, 8> kNames = {{{SIGSEGV, "SIGSEGV"},
                                                                  {SIGABRT, "SIGABRT"},
                                                                  {SIGBUS, "SIGBUS"},
                                                                  {SIGILL, "SIGILL"},
                                                                  {SIGFPE, "SIGFPE"},
                                                                  {SIGKILL, "SIGKILL"},
                                                                  {SIGTERM, "SIGTERM"},
                                                                  {SIGXCPU, "SIGXCPU"}}};
  for (const auto& [value, name] : kNames)
    if (value == number) return name;
  return std::to_string(number);
}

bool holds_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

// What NVRTC, nvcc's parts, the C++ run time and the loader say when they get no memory.
bool says_no_memory(const std::string& log) {
  return holds_any(log, {"OUT_OF_MEMORY", "bad_alloc", "out of memory", "Out of memory",
                         "annot allocate memory", "failed to map segment", "emory exhausted"});
}

// Why it failed, and what to do next; both "" if only the log tells.
struct Said {
  std::string why, next;
};

// For a compiler that SIGKILL ended. Only the kernel's counters prove that it was its OOM killer.
Said no_memory(const KillCount& before) {
  const KillCount now = count_kills();
  const std::string next =
      say("free memory, raise the limit of the container or job, or compile one image at a time with -j 1");
  if (rose(before.group, now.group))
    return {say("the kernel killed the compiler: the memory limit of this container or job was reached"),
            next};
  if (rose(before.machine, now.machine))
    return {say("the kernel killed the compiler: the machine ran out of memory"), next};
  return {say("the compiler was killed (SIGKILL), most likely for lack of memory or by a batch system"),
          next};
}

Said said_of_signal(int number, const KillCount& before) {
  if (number == SIGKILL) return no_memory(before);
  if (number == SIGXCPU)
    return {say("the compiler exceeded the processor time limit of this job (SIGXCPU)"),
            say("raise the limit (ulimit -t), or build on a machine without one and copy the module")};
  if (number == SIGTERM)
    return {say("the compiler was terminated (SIGTERM)"), say("was the job cancelled? Build again")};
  return {say("the compiler crashed ({})", signal_name(number)),
          say("use another compiler: scankit build --list-toolchains lists the installed ones")};
}

Said said_of(const toolchain::DeviceCompiler::Job& job, const ProcessResult& ran, const KillCount& before) {
  if (ran.timed_out)
    return {say("the compiler exceeded its time limit of {} seconds and was killed",
                std::chrono::duration_cast<std::chrono::seconds>(job.timeout).count()),
            say("allow more with --timeout SECONDS, or fewer at once with -j 1 if the machine is busy")};
  if (ran.signal != 0) return said_of_signal(ran.signal, before);
  // nvcc tells of its parts: "'cicc' died due to signal 11 (Invalid memory reference)".
  constexpr const char* kDied = "died due to signal ";
  if (const auto at = ran.err.find(kDied); at != std::string::npos)
    return said_of_signal(std::atoi(ran.err.c_str() + at + std::char_traits<char>::length(kDied)), before);
  // nvcc runs its parts by a shell, which ends with 128 and the signal that ended the part.
  constexpr int kBySignal = 128, kLastSignal = 31;
  if (ran.exit_code > kBySignal && ran.exit_code <= kBySignal + kLastSignal)
    return said_of_signal(ran.exit_code - kBySignal, before);
  if (says_no_memory(ran.err))
    return {say("the compiler ran out of memory"),
            say("free memory, raise the limit (ulimit -v), or compile one image at a time with -j 1")};
  return {};
}

// A word that some tool capitalises lacks its first letter. helpers/gpu/nvrtc.cc has the same words.
bool is_error(const std::string& line) {
  return holds_any(line, {"error", "fatal", "atastrophic", "undefined", "unresolved", "died due to signal"});
}

Error image_failure(const toolchain::DeviceCompiler::Job& job, const std::string& why,
                    const std::string& details, Errc code) {
  return {code, message("compiling {} for {} failed: {}", job.unit->name, job.target->name(), why), details};
}

}  // namespace

KillCount count_kills() {
  KillCount count;
  count.group = kills_of_group();
  if (const auto text = read_whole_file("/proc/vmstat")) count.machine = number_after(*text, "oom_kill");
  return count;
}

// Keeps an error's line and the two after it, which have the source line and the caret.
std::string useful_lines(const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line.substr(0, kLineLength));
  std::vector<std::string> kept;
  std::size_t follow = 0;
  for (const std::string& line : lines) {
    if (is_error(line)) follow = 3;
    if (follow == 0 || kept.size() >= kLines) continue;
    kept.push_back(line);
    --follow;
  }
  constexpr std::size_t kLast = 5;
  if (kept.empty())
    kept.assign(lines.end() - static_cast<std::ptrdiff_t>(std::min(kLast, lines.size())), lines.end());
  std::string text;
  for (const std::string& line : kept) text += (text.empty() ? "" : "\n") + line;
  const std::size_t dropped = lines.size() - kept.size();
  if (dropped > 0)
    text.append("\n").append(say_n(dropped, "({} more line of the compiler's log left out)",
                                   "({} more lines of the compiler's log left out)", dropped));
  return text;
}

Error compile_failure(const toolchain::DeviceCompiler::Job& job, const ProcessResult& ran,
                      const KillCount& before) {
  const std::string log = useful_lines(ran.err.empty() ? ran.out : ran.err);
  const Said said = said_of(job, ran, before);
  const Errc code = ran.timed_out ? Errc::Timeout : Errc::ToolFailed;
  if (!said.why.empty())
    return image_failure(job, said.why, log.empty() ? said.next : said.next + "\n" + log, code);
  if (log.empty())
    return image_failure(
        job, say("the compiler exited with status {} and no message", ran.exit_code),
        say("use another compiler: scankit build --list-toolchains lists the installed ones"), code);
  const std::string first = log.substr(0, log.find('\n'));
  return image_failure(job, first, log.size() > first.size() ? log.substr(first.size() + 1) : "", code);
}

Error no_image(const toolchain::DeviceCompiler::Job& job, const ProcessResult& ran) {
  const std::string log = useful_lines(ran.err.empty() ? ran.out : ran.err);
  const std::string next =
      say("is the disk with the temporary directory full? If not, use another compiler: scankit build "
          "--list-toolchains lists the installed ones");
  return image_failure(job,
                       say("the compiler reported no error but wrote no image for {}", job.target->name()),
                       log.empty() ? next : next + "\n" + log, Errc::ToolFailed);
}

}  // namespace scankit::compile
