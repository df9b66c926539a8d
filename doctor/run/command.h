// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/run/streams.h"

namespace scankit::run {

// Exit statuses of a command that could not be started, as shells and env(1) have them.
inline constexpr int kNotExecutable = 126, kNotFound = 127;

// A command that could not be started: the sentence for the user, and the exit status.
struct NotStarted {
  Error error;
  int status = kNotFound;
};

// Starts the command as the user's shell would have: in our process group, with our standard input, our
// environment and directory, and with the signal mask `mask`. It is looked up in PATH. It ends with us, if we
// are killed. Closes our copies of what the command got. `pid` is the result.
std::variant<pid_t, NotStarted> start_command(const std::vector<std::string>& words, const sigset_t& mask,
                                              Streams& streams);

// The file that execvp(3) would start for this word: searched in `path` (the value of PATH), relative to
// `folder`; "" if there is none. A file that may not be executed counts if nothing else is found.
std::string command_file(const std::string& word, const std::string& path, const std::string& folder);

// The interpreter that the first line of a script names, with its argument: {"/usr/bin/env", "python3"}.
// Empty for any other file.
std::vector<std::string> shebang(const std::string& file);

// Programs that start what they are given: here, in a container or on another machine; and what their own
// exit statuses mean.

// The names of the programs that a command line starts one by the other, without their directories:
// {"sudo", "timeout", "docker"} for `sudo -E timeout 60 docker run x`. The last one is no such helper as sudo.
std::vector<std::string> launched(const std::vector<std::string>& words);

// Whether a program runs what it is given in a container or on another machine (docker, srun, ssh).
bool runs_elsewhere(std::string_view program);

// How `scankit run` examines the place where the program runs its command: "srun [OPTIONS] scankit run --
// COMMAND"; "" for a program that runs it here.
std::string examined_there(std::string_view program);

// What an exit status of 124 to 127, 137 or 255 means by the documentation of the program that ended with it:
// timeout, docker, podman, env, a shell and others; "" for any other. `output` is what it printed.
Message meaning_of_exit(const std::vector<std::string>& words, int status, std::string_view output);

}  // namespace scankit::run
