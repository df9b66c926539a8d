// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the kernel knows of a death that leaves no traceback.
namespace scankit {

// How many processes of this control group (version 1 or 2), or of the machine where the group does not
// count, were killed because memory ran out.
std::uint64_t out_of_memory_kills();

// The file, without its directory, in which one of these processes crashed, as the kernel's log has it:
// "segfault at ... in selective_scan_cuda.so[...]". Nothing if the log is not readable or does not say.
// `since`: seconds of CLOCK_MONOTONIC.
std::optional<std::string> file_of_crash(const std::vector<pid_t>& pids, double since);
// The processes that a program's own report of a death names: "local_rank: 0 (pid: 41) of binary" (torchrun).
std::vector<pid_t> pids_in(const std::string& output);
// The same as file_of_crash(), of one line of the log.
std::optional<std::string> crash_in_line(const std::string& line, const std::vector<pid_t>& pids);

}  // namespace scankit
