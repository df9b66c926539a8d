// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is known of a death: by the kernel, and by the traceback or the dump in the output.
namespace scankit::run {

// How many processes were killed because memory ran out.
struct MemoryKills {
  std::uint64_t group = 0;  // of our control group (version 1 or 2); of the machine where that does not count
  std::uint64_t machine = 0;  // of the machine, with all control groups
};
MemoryKills out_of_memory_kills();

// What the kernel's log has of some processes.
struct KernelDeaths {
  std::string crashed_in;          // the file of the last crash, without its directory; "" for none
  std::uint64_t memory_kills = 0;  // those of them that were killed because memory ran out
};
// Nothing if the log is not readable. `since`: seconds of CLOCK_MONOTONIC.
KernelDeaths deaths_in_kernel_log(const std::vector<pid_t>& pids, double since);
// The processes that a program's own report of a death names: "local_rank: 0 (pid: 41) of binary" (torchrun).
std::vector<pid_t> pids_in(const std::string& output);
// Of one line of the kernel's log: the file in which one of these processes crashed ("segfault at ... in
// selective_scan_cuda.so[...]"), and whether one of them was killed because memory ran out.
std::optional<std::string> crash_in_line(const std::string& line, const std::vector<pid_t>& pids);
bool memory_kill_in_line(const std::string& line, const std::vector<pid_t>& pids);

// Where Python was when it failed, as a traceback or the dump of faulthandler in the output tells.
struct PythonPlace {
  std::string file;
  unsigned line = 0;
  std::string function;    // "<module>" for the code of the file itself
  std::string source;      // that line of the file; "" where it is not printed
  bool importing = false;  // within an import
  std::string module;      // what was imported, where the source line or a file of packages names it
};

// The innermost place that is not Python's own code for imports, of the last traceback before the line
// `before` (from 1; 0 for the end of the output). What torchrun prints of its own death is left out.
std::optional<PythonPlace> python_place(std::string_view output, std::uint64_t before = 0);

}  // namespace scankit::run
