// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/run/streams.h"

namespace scankit {

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

}  // namespace scankit
