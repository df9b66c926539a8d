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
namespace scankit {

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

}  // namespace scankit
