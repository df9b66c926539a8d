// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit::run {
namespace {

// The text after "#!" that is read at most: the kernel's limit is 256 bytes (BINPRM_BUF_SIZE).
constexpr std::size_t kFirstLine = 256;

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Why a file that exists cannot be started although nothing forbids it (ENOENT): what its first line or its
// ELF header names is missing.
NotStarted missing_interpreter(const std::string& file) {
  const auto line = shebang(file);
  if (line.empty())
    return {{Errc::NotFound, message("cannot run {}: the loader that it names does not exist", file),
             message("it was built for another system")},
            kNotExecutable};
  return {{Errc::NotFound, message("cannot run {}: its interpreter {} does not exist", file, line.front()),
           message("create the environment again: it was moved, or its Python was removed")},
          kNotExecutable};
}

NotStarted why_not_started(const std::string& word, int number) {
  const char* path = std::getenv("PATH");
  const std::string file = command_file(word, path == nullptr ? "/bin:/usr/bin" : path, current_directory());
  if (number == ENOENT && !file.empty()) return missing_interpreter(file);
  if (number == ENOENT && word.find(' ') != std::string::npos)
    return {{Errc::NotFound, message("command not found: '{}'", word),
             message("write the command and its arguments as separate words, without quotes around them")},
            kNotFound};
  if (number == ENOENT || number == ENOTDIR)
    return {{Errc::NotFound, message("command not found: {}", word), ""}, kNotFound};
  if (is_directory(file))
    return {{Errc::PermissionDenied, message("cannot run {}: it is a directory", word), ""}, kNotExecutable};
  if (number == EACCES)
    return {{Errc::PermissionDenied, message("cannot run {}: permission denied", word),
             message("a program must be executable: chmod +x {}", shell_quoted(file))},
            kNotExecutable};
  return {{Errc::Io, message("cannot run {}: {}", word, std::strerror(number)), ""}, kNotExecutable};
}

// In the child. Returns errno; execvp(3) gives a script without "#!" to /bin/sh, as shells do.
int become_command(char* const* words, const sigset_t& mask, const Streams& streams, pid_t parent) {
  die_with_parent(parent);
  for (const auto& [index, number] : {std::pair(streams.out, STDOUT_FILENO), {streams.err, STDERR_FILENO}})
    if (index >= 0) ::dup2(streams.relayed[static_cast<std::size_t>(index)].childs.get(), number);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(words[0], words);
  return errno;
}

}  // namespace

std::variant<pid_t, NotStarted> start_command(const std::vector<std::string>& words, const sigset_t& mask,
                                              Streams& streams) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  // Closed by a successful exec; otherwise the number of the error comes through it.
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return why_not_started(words[0], errno);
  const Descriptor failure(ends[0]);
  Descriptor failure_end(ends[1]);
  // A low number would be overwritten by the standard streams of the child.
  if (failure_end.get() <= 2) failure_end = Descriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, 3));
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    const int number = become_command(pointers.data(), mask, streams, parent);
    (void)!::write(failure_end.get(), &number, sizeof(number));
    ::_exit(kNotFound);
  }
  if (pid < 0) return why_not_started(words[0], errno);
  failure_end = Descriptor();
  for (RelayedStream& stream : streams.relayed) stream.childs = Descriptor();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.get(), &number, sizeof(number));
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(number)) return pid;
  return why_not_started(words[0], number);
}

std::string command_file(const std::string& word, const std::string& path, const std::string& folder) {
  if (word.empty()) return "";
  if (word.find('/') != std::string::npos) {
    const std::string file = path_join(folder, word);
    return ::access(file.c_str(), F_OK) == 0 ? file : "";
  }
  std::string forbidden;
  for (const std::string& entry : split(path, ":")) {
    // An empty entry means the current directory (execvp(3)).
    const std::string file = path_join(folder, path_join(entry.empty() ? "." : entry, word));
    if (is_directory(file) || ::access(file.c_str(), F_OK) != 0) continue;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (forbidden.empty()) forbidden = file;
  }
  return forbidden;
}

std::vector<std::string> shebang(const std::string& file) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kFirstLine> bytes{};
  const ssize_t got = fd.get() < 0 ? -1 : ::read(fd.get(), bytes.data(), bytes.size());
  const std::string_view text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!text.starts_with("#!")) return {};
  const std::string_view line = trimmed(text.substr(2, text.find('\n') - 2));
  const auto space = line.find_first_of(" \t");
  if (space == std::string_view::npos) return {std::string(line)};
  return {std::string(line.substr(0, space)), std::string(trimmed(line.substr(space)))};
}

namespace {

// A program that runs the rest of its words as a command, here and as another user, slower and so on.
struct Helper {
  std::string_view name;
  std::string_view with_value;  // its short options whose value is the next word
  int words = 0;                // words of its own before the command
};
constexpr std::array kHelpers{
    Helper{"sudo", "ugUChpRrTt", 0}, Helper{"doas", "uC", 0},     Helper{"env", "uCS", 0},
    Helper{"nohup", "", 0},          Helper{"nice", "n", 0},      Helper{"ionice", "cn", 0},
    Helper{"timeout", "sk", 1},      Helper{"stdbuf", "ioe", 0},  Helper{"setsid", "", 0},
    Helper{"time", "fo", 0},         Helper{"taskset", "", 1},    Helper{"chrt", "", 1},
    Helper{"prlimit", "", 0},        Helper{"numactl", "NmCi", 0}};

constexpr std::array<std::string_view, 3> kEngines{"docker", "podman", "nerdctl"};
constexpr std::array<std::string_view, 3> kImages{"singularity", "apptainer", "enroot"};
constexpr std::array<std::string_view, 5> kMachines{"srun", "sbatch", "ssh", "kubectl", "ray"};
constexpr std::array<std::string_view, 6> kShells{"sh", "bash", "dash", "zsh", "ksh", "xargs"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const Helper* helper(std::string_view name) {
  const auto* const found = std::ranges::find(kHelpers, name, &Helper::name);
  return found == kHelpers.end() ? nullptr : &*found;
}

// The place of the command behind a helper's own words.
std::size_t behind(const Helper& helper, const std::vector<std::string>& words, std::size_t at) {
  int own = helper.words;
  for (++at; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") return at + 1;
    const bool option = word.size() > 1 && word[0] == '-';
    if (option && word.size() == 2 && helper.with_value.find(word[1]) != std::string_view::npos) ++at;
    const bool variable = word.find('=') != std::string::npos;  // NAME=VALUE of env and sudo
    if (option || variable) continue;
    if (own-- <= 0) return at;
  }
  return at;
}

Message meaning_for_engine(const std::string& engine, const std::vector<std::string>& words, int status) {
  const auto starts = [](const std::string& word) {
    return word == "run" || word == "exec" || word == "start";
  };
  if (std::ranges::none_of(words, starts)) return {};
  if (status == 125) return message("{} itself failed before it started the command in a container", engine);
  if (status == 126) return message("the command could not be started in the container");
  if (status == 127) return message("the container has no such command");
  if (status == 137)
    return message(
        "the command in the container was killed: somebody stopped it, or its memory ran out; {} "
        "inspect shows which (OOMKilled)",
        engine);
  return {};
}

// slurmstepd: "error: execve(): train: No such file or directory".
Message meaning_for_slurm(std::string_view output) {
  constexpr std::string_view kStart = "execve(): ";
  const auto at = output.rfind(kStart);
  if (at == std::string_view::npos) return {};
  const std::string_view line = output.substr(at + kStart.size(), output.find('\n', at) - at - kStart.size());
  const auto colon = line.rfind(": ");
  if (colon == std::string_view::npos) return {};
  return message("the node cannot start {}: {}", std::string(line.substr(0, colon)),
                 std::string(trimmed(line.substr(colon + 2))));
}

Message meaning_for_helper(const std::string& name, int status) {
  if (name == "timeout" && status == 124) return message("its time was up, so timeout ended it");
  if (name == "timeout" && status == 137)
    return message("its time was up, so timeout killed it, or something else did");
  if (status == 125 && helper(name) != nullptr) return message("{} itself failed", name);
  return {};
}

}  // namespace

std::vector<std::string> launched(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < words.size();) {
    names.push_back(path_basename(words[at]));
    const Helper* found = helper(names.back());
    if (found == nullptr) break;
    at = behind(*found, words, at);
  }
  return names;
}

bool runs_elsewhere(std::string_view program) {
  return contains(kEngines, program) || contains(kImages, program) || contains(kMachines, program);
}

std::string examined_there(std::string_view program) {
  if (!runs_elsewhere(program)) return "";
  const std::string name(program);
  if (contains(kEngines, program)) return name + " run [OPTIONS] IMAGE scankit run -- COMMAND";
  if (contains(kImages, program)) return name + " exec [OPTIONS] IMAGE scankit run -- COMMAND";
  if (program == "ssh") return "ssh HOST scankit run -- COMMAND";
  if (program == "kubectl") return "kubectl exec POD -- scankit run -- COMMAND";
  return name + " [OPTIONS] scankit run -- COMMAND";
}

Message meaning_of_exit(const std::vector<std::string>& words, int status, std::string_view output) {
  const std::vector<std::string> names = launched(words);
  if (names.empty()) return {};
  const std::string& last = names.back();
  if (last == "srun" || last == "sbatch") return meaning_for_slurm(output);
  if (contains(kEngines, last))
    if (Message meaning = meaning_for_engine(last, words, status); !meaning.empty()) return meaning;
  for (const std::string& name : names)
    if (Message meaning = meaning_for_helper(name, status); !meaning.empty()) return meaning;
  if (last == "ssh" && status == 255) return message("ssh did not reach the machine, or lost it");
  const bool calls = contains(kShells, last) || names.size() > 1;
  if (calls && status == 126) return message("a program that it calls cannot be executed");
  if (calls && status == 127) return message("a program that it calls was not found");
  return {};
}

}  // namespace scankit::run
