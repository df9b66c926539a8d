// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"

// Programs that start what they are given: here, in a container or on another machine; and what their own
// exit statuses mean.
namespace scankit {

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

}  // namespace scankit
