// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/deaths.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/run/interpreters.h"

namespace scankit::run {
namespace {

constexpr std::size_t kLimit = 1u << 20;

// "" if the file cannot be read. read_whole_file() takes files of /proc, whose size is 0.
std::string text_of(const std::string& path) { return read_whole_file(path, kLimit).value_or(""); }

// The number behind "oom_kill " at the start of a line.
std::optional<std::uint64_t> oom_kill_line(const std::string& text) {
  for (const std::string_view line : lines_of(text))
    if (line.starts_with("oom_kill ")) return std::strtoull(std::string(line.substr(9)).c_str(), nullptr, 10);
  return std::nullopt;
}

// Files that count for our control group. In a container, the path of /proc/self/cgroup often is that of the
// host, and the group itself is mounted at the root.
std::vector<std::string> counters() {
  std::vector<std::string> files;
  const std::string groups = text_of("/proc/self/cgroup");
  for (const std::string_view line : lines_of(groups)) {
    const auto parts = split(line, ":");
    if (parts.size() != 3) continue;
    const auto controllers = split(parts[1], ",");
    const bool memory = std::ranges::find(controllers, "memory") != controllers.end();
    if (!memory && !parts[1].empty()) continue;
    const std::string base = memory ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string file = memory ? "memory.oom_control" : "memory.events";
    files.push_back(path_normalize(base + parts[2] + "/" + file));
    files.push_back(path_join(base, file));
  }
  return files;
}

}  // namespace

MemoryKills out_of_memory_kills() {
  MemoryKills kills;
  kills.machine = oom_kill_line(text_of("/proc/vmstat")).value_or(0);
  for (const std::string& file : counters())
    if (const auto counted = oom_kill_line(text_of(file))) {
      kills.group = *counted;
      return kills;
    }
  kills.group = kills.machine;
  return kills;
}

std::vector<pid_t> pids_in(const std::string& output) {
  constexpr std::size_t kMost = 64;
  std::vector<pid_t> pids;
  for (auto at = output.find("pid: "); at != std::string::npos && pids.size() < kMost;
       at = output.find("pid: ", at + 1))
    if (const long pid = std::strtol(output.c_str() + at + 5, nullptr, 10); pid > 1 && pid < 1L << 30)
      pids.push_back(static_cast<pid_t>(pid));
  return pids;
}

// arch/x86/mm/fault.c and arch/x86/kernel/traps.c: "python3[41]: segfault at 0 ip ... error 4 in X.so[...]",
// "traps: python3[41] general protection fault ip:... in X.so[...]".
std::optional<std::string> crash_in_line(const std::string& line, const std::vector<pid_t>& pids) {
  const bool ours = std::ranges::any_of(
      pids, [&](pid_t pid) { return line.find("[" + std::to_string(pid) + "]") != std::string::npos; });
  const bool crash = line.find("segfault at ") != std::string::npos ||
                     line.find("general protection fault") != std::string::npos ||
                     line.find("trap ") != std::string::npos;
  const auto in = line.rfind(" in ");
  if (!ours || !crash || in == std::string::npos) return std::nullopt;
  const std::string name = line.substr(in + 4, line.find('[', in) - in - 4);
  return name.empty() ? std::nullopt : std::optional(name);
}

// mm/oom_kill.c: "Memory cgroup out of memory: Killed process 41 (python) total-vm:...", and the same with
// "Out of memory" for the whole machine.
bool memory_kill_in_line(const std::string& line, const std::vector<pid_t>& pids) {
  constexpr std::string_view kKilled = "Killed process ";
  const auto killed = line.find(kKilled);
  if (killed == std::string::npos || line.find("ut of memory: ") == std::string::npos) return false;
  const long pid = std::strtol(line.c_str() + killed + kKilled.size(), nullptr, 10);
  return std::ranges::find(pids, static_cast<pid_t>(pid)) != pids.end();
}

// Each read(2) of /dev/kmsg gives one record: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT". The last crash
// counts.
KernelDeaths deaths_in_kernel_log(const std::vector<pid_t>& pids, double since) {
  const Descriptor log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  KernelDeaths deaths;
  if (log.get() < 0) return deaths;
  constexpr int kMostRecords = 100'000;
  std::array<char, 8192> record{};
  for (int i = 0; i < kMostRecords; ++i) {
    const ssize_t got = ::read(log.get(), record.data(), record.size());
    if (got < 0 && errno == EPIPE) continue;  // records were overwritten meanwhile
    if (got <= 0) break;
    const std::string text(record.data(), static_cast<std::size_t>(got));
    const auto fields = split(text.substr(0, text.find(';')), ",");
    if (fields.size() < 3 || std::strtod(fields[2].c_str(), nullptr) < since * 1e6) continue;
    const std::string line = text.substr(0, text.find('\n'));
    if (auto found = crash_in_line(line, pids)) deaths.crashed_in = *std::move(found);
    if (memory_kill_in_line(line, pids)) ++deaths.memory_kills;
  }
  return deaths;
}

namespace {

using Frames = std::vector<PythonPlace>;

// `  File "a.py", line 3, in f` of a traceback, `  File "a.py", line 3 in f` of faulthandler; pip, torchrun
// and others put something in front of it.
std::optional<PythonPlace> frame_in(std::string_view line) {
  const auto start = line.find("File \"");
  if (start == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(start + 6);
  const auto quote = rest.find("\", line ");
  if (quote == std::string_view::npos) return std::nullopt;
  PythonPlace place;
  place.file = rest.substr(0, quote);
  const std::string_view number = rest.substr(quote + 8);
  place.line = static_cast<unsigned>(std::strtoul(std::string(number.substr(0, 12)).c_str(), nullptr, 10));
  if (const auto in = number.find(" in "); in != std::string_view::npos)
    place.function = trimmed(number.substr(in + 4));
  return place;
}

bool is_source(std::string_view line) {
  return !line.empty() && line.find_first_not_of("^~| ") != std::string_view::npos;
}

bool is_of_imports(const PythonPlace& frame) { return frame.file.starts_with("<frozen importlib"); }

bool is_import(std::string_view source) {
  return source.starts_with("import ") || source.starts_with("from ");
}

// "a.b" of `import a.b` and `from a.b import c`; "" where the line names several.
std::string named_by(std::string_view source) {
  const std::string_view rest = trimmed(source.substr(source.find(' ')));
  const bool several = source.starts_with("import ") && rest.find(',') != std::string_view::npos;
  return several ? "" : std::string(rest.substr(0, rest.find_first_of(" ;#")));
}

// Frames from the outermost to the innermost one.
std::optional<PythonPlace> innermost(const Frames& frames) {
  const auto last = std::ranges::find_if_not(frames.rbegin(), frames.rend(), is_of_imports);
  if (last == frames.rend()) return std::nullopt;
  PythonPlace place = *last;
  const bool within = last != frames.rbegin();
  // The code of a file that another file imports. `python -m` and runpy start the first one.
  const bool imported =
      place.function == "<module>" && std::ranges::any_of(last + 1, frames.rend(), is_of_imports);
  place.importing = within || imported || is_import(place.source);
  if (is_import(place.source))
    place.module = named_by(place.source);
  else if (imported && place.file.ends_with(".py"))
    place.module = module_of_file(place.file);
  return place;
}

// The frames of the last traceback or dump, as its lines come.
class Reader {
 public:
  void take(std::string_view line) {
    constexpr std::string_view kDump = "hread 0x";
    if (line.find("Traceback (most recent call last)") != std::string_view::npos) return begin(false);
    // A dump has all threads, and the one that failed is called the current one.
    if (line.find(kDump) != std::string_view::npos) {
      other_thread_ = line.find("Current thread") == std::string_view::npos;
      return other_thread_ ? void() : begin(true);
    }
    if (auto frame = frame_in(line); frame && !other_thread_) {
      if (frames_.size() == kMost && !dump_) frames_.erase(frames_.begin());
      if (frames_.size() < kMost) frames_.push_back(*std::move(frame));
      expects_source_ = !dump_;
      return;
    }
    const std::string_view text = trimmed(line);
    if (expects_source_ && is_source(text)) frames_.back().source = text;
    expects_source_ = false;
    if (text.find("ChildFailedError") != std::string_view::npos) frames_ = before_;
  }
  std::optional<PythonPlace> place() const {
    Frames frames = frames_;
    if (dump_) std::ranges::reverse(frames);
    return innermost(frames);
  }

 private:
  static constexpr std::size_t kMost = 1000;
  void begin(bool dump) {
    if (!frames_.empty()) before_ = std::move(frames_);
    frames_.clear();
    dump_ = dump;
    other_thread_ = false;
  }
  Frames frames_, before_;
  bool dump_ = false, other_thread_ = false, expects_source_ = false;
};

}  // namespace

std::optional<PythonPlace> python_place(std::string_view output, std::uint64_t before) {
  Reader reader;
  std::uint64_t number = 0;
  for (const std::string_view line : lines_of(output)) {
    if (before != 0 && ++number > before) break;
    reader.take(line);
  }
  return reader.place();
}

}  // namespace scankit::run
