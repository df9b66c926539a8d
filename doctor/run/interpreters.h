// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The processes below the command, as /proc shows them now and then. Nothing is attached to them and nothing
// is put into their environment.
namespace scankit::run {

// An interpreter that ran below the command. Several processes of one interpreter are one.
struct SeenInterpreter {
  std::string path;                      // as it was started: a venv's bin/python, not what it is a link to
  std::string directory;                 // its working directory
  std::vector<std::string> environment;  // NAME=VALUE, as it was started
  std::vector<pid_t> pids;               // the last ones
  // Compiled modules that were mapped when it was last looked at, those that were mapped last at the end.
  std::vector<std::string> modules;
  bool other_root = false;  // it runs in a container: its paths mean other files
};

class ProcessSampler {
 public:
  // `top` is the command. It and its descendants are looked at.
  explicit ProcessSampler(pid_t top);
  // Looks once. The time until the next look: short at first, since a failing import is short, and always a
  // hundred times what this look took, so that no more than one percent of a core is used.
  std::chrono::milliseconds look();
  const std::vector<SeenInterpreter>& interpreters() const { return interpreters_; }
  // The names of all programs that were seen, in that order: "make", "ninja", "docker". At most 64.
  const std::vector<std::string>& programs() const { return programs_; }

 private:
  struct Known {
    std::string file;         // /proc/PID/exe
    int interpreter = -1;     // index in interpreters_
    std::uint64_t pages = 0;  // size when its mappings were last read
  };
  void look_at(pid_t pid);
  void note_program(const std::string& file);
  int interpreter_of(pid_t pid, const std::string& file);
  std::vector<pid_t> descendants() const;

  pid_t top_;
  std::chrono::milliseconds next_{5};
  std::map<pid_t, Known> known_;
  std::vector<SeenInterpreter> interpreters_;
  std::vector<std::string> programs_;
};

// The interpreter that starting `words` would run first: the command itself, or what the first line of a
// script such as pip or torchrun names. Nothing if it is not Python. Needs no process: for commands that end
// before anybody could look at them.
std::optional<SeenInterpreter> interpreter_of_command(const std::vector<std::string>& words);

// The interpreter that a failure is about, among those that ran and those that the output names: the one whose
// site-packages the last traceback is in; else the one that was started first. Nothing if none is known or
// none exists any more. Interpreters of a container are left out.
std::optional<SeenInterpreter> failing_interpreter(const std::string& output,
                                                   const std::vector<SeenInterpreter>& seen);

// "torchvision._C" for ".../site-packages/torchvision/_C.so"; "" for a file that is in no directory of
// packages, or whose name cannot be imported.
std::string module_of_file(const std::string& file);

// The modules that a process probably died in: that of `crashed_in` (a file's name), else the last ones
// that were mapped. Paths, at most three.
std::vector<std::string> modules_at_death(const std::string& crashed_in,
                                          const std::vector<SeenInterpreter>& seen);

}  // namespace scankit::run
