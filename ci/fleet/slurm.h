// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ci/fleet/roster.h"
#include "doctor/base/result.h"

// Slurm by its own commands, nothing of its libraries: those differ from site to site.
namespace scankit::fleet {

// The allocation that this process runs in, from $SLURM_JOB_ID and $SLURM_JOB_NODELIST.
struct SlurmJob {
  std::string id, nodes;  // "7", "node[1-4]"
};
std::optional<SlurmJob> current_job();

// "node[1-4]" as names; `scontrol show hostnames` knows every form.
Result<std::vector<std::string>> host_names(const std::string& list);

// What Slurm says of nodes that are not to be had: "down*: Not responding". The others are left out.
std::map<std::string, std::string> unusable_nodes(const std::vector<std::string>& nodes);

// srun, salloc and scontrol, before anything is asked of them.
Result<void> slurm_is_here();

// What a message of Slurm's means, and what to do next.
struct Explained {
  std::string sentence;
  int exit_status = 0;
};
std::optional<Explained> explain_slurm(std::string_view line);

// Runs this program inside a new allocation, with `words` as its command line. Returns its exit status, or
// that of not getting an allocation. `began` says whether the program ran at all.
int in_allocation(const std::vector<std::string>& slurm_options, const std::vector<std::string>& words,
                  const std::function<bool()>& began);

// What launch() starts: `scankit` is the program's path on the nodes, `out` the directory for results.
struct Launch {
  std::string scankit, out;
  std::vector<std::string> nodes, slurm_options;
  std::function<void(std::size_t done)> progress;
};
// Runs `scankit fleet node` on the nodes and notes in `roster` what was seen of each.
Result<void> launch(const Launch& how, Roster& roster);

}  // namespace scankit::fleet
