// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/interpreters.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/run/command.h"

extern char** environ;

namespace scankit::run {
namespace {

// Limits on what a command with many processes may make us remember and read.
constexpr std::size_t kInterpreters = 16, kPrograms = 64, kPids = 64, kProcesses = 1024, kModules = 256;
constexpr std::size_t kEnvironment = 256u << 10, kMappings = 4u << 20;
constexpr std::chrono::milliseconds kLongestPause{250};

std::string proc(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// Files of /proc have no size. At most `most` bytes; "" if the process is gone or is not ours.
std::string read_proc(const std::string& path, std::size_t most) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (fd.get() < 0) return text;
  for (char buffer[16384]; text.size() < most;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

std::string link_target(const std::string& path) {
  char target[4096];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  return std::string(target, length > 0 ? static_cast<std::size_t>(length) : 0);
}

std::vector<std::string> zero_separated(const std::string& text) {
  return split_nonempty(text, std::string_view("\0", 1));
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

bool is_python_name(const std::string& file) {
  const std::string name = path_basename(file);
  return name.starts_with("python") || name.starts_with("pypy");
}

std::string real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  const std::string real = resolved == nullptr ? "" : resolved;
  std::free(resolved);
  return real;
}

// The path by which Python finds its environment: argv[0] as the process was started. /proc/PID/exe is what a
// venv's bin/python links to, and knows nothing of the venv.
std::string started_as(const std::string& word, const SeenInterpreter& seen, const std::string& file) {
  const std::string path = command_file(word, value_of(seen.environment, "PATH"), seen.directory);
  return !path.empty() && real_path(path) == file ? path_normalize(path) : file;
}

// Whether a file is a module that Python imported, and not a library: it has no "lib" in front, or is in
// site-packages below a package.
bool is_module_file(std::string_view path) {
  const std::string name = path_basename(path);
  return name.ends_with(".so") && !name.starts_with("lib") && path.find("/lib-dynload/") == path.npos &&
         (path.find("-packages/") != path.npos || name.find(".cpython-") != name.npos ||
          name.find(".abi3.") != name.npos);
}

// The files of modules in the mappings: each line ends with the path of the mapped file (proc(5)). The kernel
// maps downwards, so the first line is usually the latest file; here it is the last.
std::vector<std::string> mapped_modules(const std::string& mappings) {
  std::vector<std::string> files;
  for (const std::string_view line : lines_of(mappings)) {
    const auto slash = line.find('/');
    if (slash == std::string_view::npos || !is_module_file(line.substr(slash))) continue;
    if (files.empty() || files.back() != line.substr(slash)) files.emplace_back(line.substr(slash));
  }
  std::ranges::reverse(files);
  return files;
}

// Descendants by the kernel's own list of children, which not every kernel has (CONFIG_PROC_CHILDREN).
bool children_of(pid_t pid, std::vector<pid_t>& found) {
  const std::string path = proc(pid, "task/") + std::to_string(pid) + "/children";
  if (::access(path.c_str(), F_OK) != 0) return false;
  for (const std::string& number : split_nonempty(read_proc(path, 1u << 16), " \n"))
    found.push_back(static_cast<pid_t>(std::atoi(number.c_str())));
  return true;
}

// The parent; 0 if it is not known. The name in the parentheses may contain anything (proc(5)).
pid_t parent_of(pid_t pid) {
  const std::string stat = read_proc(proc(pid, "stat"), 4096);
  const auto end = stat.rfind(") ");
  return end == std::string::npos || end + 4 >= stat.size()
             ? 0
             : static_cast<pid_t>(std::atoi(stat.c_str() + end + 4));
}

std::map<pid_t, std::vector<pid_t>> all_children() {
  std::map<pid_t, std::vector<pid_t>> children;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return children;
  while (const dirent* entry = ::readdir(directory))
    if (is_digit(entry->d_name[0])) {
      const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
      children[parent_of(pid)].push_back(pid);
    }
  ::closedir(directory);
  return children;
}

bool same_root(pid_t pid) {
  struct stat ours {
  }, theirs{};
  return ::stat("/", &ours) != 0 || ::stat(proc(pid, "root").c_str(), &theirs) != 0 ||
         (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino);
}

}  // namespace

ProcessSampler::ProcessSampler(pid_t top) : top_(top) {}

std::vector<pid_t> ProcessSampler::descendants() const {
  std::vector<pid_t> all{top_}, scratch;
  const bool listed = children_of(top_, scratch);
  const auto by_parent = listed ? std::map<pid_t, std::vector<pid_t>>() : all_children();
  for (std::size_t i = 0; i < all.size() && all.size() < kProcesses; ++i) {
    if (listed)
      children_of(all[i], all);
    else if (const auto found = by_parent.find(all[i]); found != by_parent.end())
      all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

std::chrono::milliseconds ProcessSampler::look() {
  const auto start = std::chrono::steady_clock::now();
  for (const pid_t pid : descendants()) look_at(pid);
  const auto took = std::chrono::steady_clock::now() - start;
  next_ = std::min(next_ * 3 / 2, kLongestPause);
  return std::max(next_, std::chrono::duration_cast<std::chrono::milliseconds>(took * 100));
}

int ProcessSampler::interpreter_of(pid_t pid, const std::string& file) {
  if (!is_python_name(file)) return -1;
  SeenInterpreter seen;
  seen.environment = zero_separated(read_proc(proc(pid, "environ"), kEnvironment));
  seen.directory = link_target(proc(pid, "cwd"));
  const auto words = zero_separated(read_proc(proc(pid, "cmdline"), 1u << 16));
  seen.path = words.empty() ? file : started_as(words.front(), seen, file);
  seen.other_root = !same_root(pid);
  for (std::size_t i = 0; i < interpreters_.size(); ++i)
    if (interpreters_[i].path == seen.path && interpreters_[i].other_root == seen.other_root)
      return static_cast<int>(i);
  if (interpreters_.size() == kInterpreters) return -1;
  interpreters_.push_back(std::move(seen));
  return static_cast<int>(interpreters_.size()) - 1;
}

void ProcessSampler::note_program(const std::string& file) {
  std::string name = path_basename(file);
  if (programs_.size() < kPrograms && std::ranges::find(programs_, name) == programs_.end())
    programs_.push_back(std::move(name));
}

// A process is one program after the other: /proc/PID/exe changes with execve(2).
void ProcessSampler::look_at(pid_t pid) {
  const std::string file = link_target(proc(pid, "exe"));
  if (file.empty()) return;
  if (known_.size() > 4 * kProcesses) known_.clear();
  Known& known = known_[pid];
  if (known.file != file) {
    known = {file, interpreter_of(pid, file), 0};
    note_program(file);
  }
  if (known.interpreter < 0) return;
  SeenInterpreter& seen = interpreters_[static_cast<std::size_t>(known.interpreter)];
  if (std::ranges::find(seen.pids, pid) == seen.pids.end()) seen.pids.push_back(pid);
  if (seen.pids.size() > kPids) seen.pids.erase(seen.pids.begin());
  // The list of mappings of a process with torch has thousands of lines. It is only read again when the
  // size of the process has changed.
  const std::uint64_t pages = std::strtoull(read_proc(proc(pid, "statm"), 128).c_str(), nullptr, 10);
  if (pages == known.pages) return;
  known.pages = pages;
  for (std::string& module : mapped_modules(read_proc(proc(pid, "maps"), kMappings)))
    if (std::ranges::find(seen.modules, module) == seen.modules.end())
      seen.modules.push_back(std::move(module));
  if (seen.modules.size() > kModules)
    seen.modules.erase(seen.modules.begin(), seen.modules.end() - static_cast<std::ptrdiff_t>(kModules));
}

std::optional<SeenInterpreter> interpreter_of_command(const std::vector<std::string>& words) {
  SeenInterpreter seen;
  seen.directory = current_directory();
  for (char** entry = environ; *entry != nullptr; ++entry) seen.environment.emplace_back(*entry);
  const std::string path = value_of(seen.environment, "PATH");
  seen.path = command_file(words.front(), path, seen.directory);
  // A script names an interpreter, which may be a script itself (a shim), and so on.
  for (int depth = 0; depth < 4; ++depth) {
    const auto line = shebang(seen.path);
    if (line.empty()) break;
    const bool env = path_basename(line.front()) == "env" && line.size() > 1;
    if (!env) {
      seen.path = line.front();
      continue;
    }
    // "#!/usr/bin/env -S python3 -u": the first word that is neither an option nor NAME=VALUE.
    std::string program;
    for (const std::string& word : split_nonempty(line[1], " \t"))
      if (program.empty() && word[0] != '-' && word.find('=') == std::string::npos) program = word;
    seen.path = command_file(program, path, seen.directory);
  }
  if (seen.path.empty() || !is_python_name(real_path(seen.path))) return std::nullopt;
  seen.path = path_normalize(seen.path);
  return seen;
}

namespace {

// The absolute path that ends at `end`: it begins behind white space, a quote or a bracket. Spaces in paths
// would need the quotes of a traceback; such a path is cut, and then matches no interpreter.
std::string_view path_before(std::string_view text, std::size_t end) {
  const auto before = text.find_last_of(" \t\n\r\"'([=:,`", end == 0 ? 0 : end - 1);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view path = text.substr(start, end - start);
  return path.starts_with('/') ? path : std::string_view();
}

// Prefixes of environments that the output names by `mark`, the last one first: "/x" for
// "/x/lib/python3.11/site-packages/...". With `packages`, only where a directory of packages follows.
std::vector<std::string> prefixes(std::string_view output, std::string_view mark, bool packages) {
  constexpr std::size_t kMost = 256;
  std::vector<std::string> found;
  for (auto at = output.rfind(mark); at != std::string_view::npos && found.size() < kMost;
       at = at == 0 ? std::string_view::npos : output.rfind(mark, at - 1)) {
    const std::string prefix(path_before(output, at));
    const auto slash = output.find('/', at + mark.size());
    const bool follows = slash != std::string_view::npos && slash - at < mark.size() + 8 &&
                         (output.substr(slash).starts_with("/site-packages/") ||
                          output.substr(slash).starts_with("/dist-packages/"));
    if (prefix.empty() || (packages && !follows)) continue;
    if (std::ranges::find(found, prefix) == found.end()) found.push_back(prefix);
  }
  return found;
}

std::string prefix_of(const SeenInterpreter& seen) { return path_dirname(path_dirname(seen.path)); }

bool is_usable(const std::string& python) { return ::access(python.c_str(), X_OK) == 0; }

const SeenInterpreter* with_prefix(const std::vector<SeenInterpreter>& seen, const std::string& prefix) {
  for (const SeenInterpreter& each : seen)
    if (!each.other_root && prefix_of(each) == prefix && is_usable(each.path)) return &each;
  return nullptr;
}

// An interpreter that nobody saw, but whose packages are in the traceback.
std::optional<SeenInterpreter> below(const std::string& prefix) {
  for (const char* name : {"/bin/python3", "/bin/python"})
    if (is_usable(prefix + name)) {
      SeenInterpreter found;
      found.path = prefix + name;
      return found;
    }
  return std::nullopt;
}

bool is_identifier(std::string_view word) {
  if (word.empty() || is_digit(word.front())) return false;
  return std::ranges::all_of(word, [](char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

std::optional<SeenInterpreter> failing_interpreter(const std::string& output,
                                                   const std::vector<SeenInterpreter>& seen) {
  const auto packages = prefixes(output, "/lib/python3", true);
  for (const std::string& prefix : packages)
    if (const SeenInterpreter* found = with_prefix(seen, prefix)) return *found;
  // "of binary: /x/bin/python" (torchrun).
  for (const std::string& prefix : prefixes(output, "/bin/python", false))
    if (const SeenInterpreter* found = with_prefix(seen, prefix)) return *found;
  for (const SeenInterpreter& each : seen)
    if (!each.other_root && is_usable(each.path)) return each;
  if (!seen.empty()) return std::nullopt;
  for (const std::string& prefix : packages)
    if (auto found = below(prefix)) return found;
  return std::nullopt;
}

std::string module_of_file(const std::string& file) {
  const auto at = file.rfind("-packages/");
  if (at == std::string::npos) return "";
  std::vector<std::string> parts = split(file.substr(at + 10), "/");
  parts.back() = parts.back().substr(0, parts.back().find('.'));
  return std::ranges::all_of(parts, is_identifier) ? join(parts, ".") : "";
}

std::vector<std::string> modules_at_death(const std::string& crashed_in,
                                          const std::vector<SeenInterpreter>& seen) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> files;
  for (const SeenInterpreter& each : seen)
    for (auto module = each.modules.rbegin(); module != each.modules.rend() && files.size() < kMost; ++module)
      if (crashed_in.empty() || path_basename(*module) == crashed_in) files.push_back(*module);
  return files;
}

}  // namespace scankit::run
