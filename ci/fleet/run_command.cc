// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>

#include "ci/fleet/commands.h"
#include "ci/fleet/slurm.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"

// `scankit fleet run --slurm`. Outside of an allocation it runs itself inside a new one; inside of one it
// launches the nodes that have not answered yet and reports over all. Running the same line again
// continues an interrupted fleet.
namespace scankit::fleet {
namespace {

// The variable that names the launch for which salloc was started. The process inside the allocation
// relies on the outer one's lock, and writes this id into fleet.json, which tells the outer process
// that it ran.
constexpr const char* kLaunch = "SCANKIT_FLEET_LAUNCH";

int complained(const Error& error, int status) {
  cli::report_error(error);
  return status;
}

std::string absolute(const std::string& path) {
  return path_normalize(path.starts_with('/') ? path : path_join(current_directory(), path));
}

Roster fresh_roster(const RunOptions& options, const std::vector<std::string>& command) {
  Roster roster;
  roster.fleet = fresh_id();
  roster.tool_version = kToolVersion;
  roster.engine = "slurm";
  roster.command = command;
  roster.inputs = input_hashes(command);
  roster.command_sha256 = command_hash(command, roster.inputs);
  roster.timeout = options.timeout;
  return roster;
}

// All nodes must compute the same cases, or their errors could not be compared. The seed comes from the
// fleet's id, so that a continued fleet has it too.
std::vector<std::string> with_one_seed(std::vector<std::string> command, const std::string& fleet) {
  if (command.front() == "validate" && option_value(command, "--seed").empty())
    command.insert(command.end(), {"--seed", std::to_string(std::stoul(fleet.substr(0, 8), nullptr, 16))});
  return command;
}

// The roster of the directory if it belongs to the same command with the same input files, else a new one.
// The roster of another command is an error: results of two commands must not mix.
Result<Roster> roster_for(const RunOptions& options, const std::vector<std::string>& command) {
  Roster roster = fresh_roster(options, command);
  auto before = read_roster(options.out);
  if (!before && before.error().code != Errc::NotFound) return before.error();
  if (!before) {
    roster.command = with_one_seed(command, roster.fleet);
    roster.command_sha256 = command_hash(roster.command, roster.inputs);
    return roster;
  }
  const auto again = with_one_seed(command, before->fleet);
  if (before->command_sha256 != command_hash(again, roster.inputs)) {
    std::string words;
    for (const std::string& word : before->command) words += (words.empty() ? "" : " ") + shell_quoted(word);
    return Error{
        Errc::Conflict,
        message("{} contains the results of another fleet: {}, of \"{}\"", options.out, before->fleet, words),
        message("choose another directory with --out; the same command would continue that fleet")};
  }
  before->timeout = options.timeout;
  return before;
}

// The nodes that have no answer yet. A command that ended by itself has answered, whatever its status.
std::vector<std::string> open_nodes(const FleetReport& report, const std::vector<std::string>& nodes) {
  std::set<std::string> done;
  for (const NodeEvent& line : report.nodes)
    if (line.result && line.result->end == "exited" && line.state == "answered" &&
        !line.result->summary.verdict.empty())
      done.insert(line.name);
  std::vector<std::string> open;
  for (const std::string& node : nodes)
    if (!done.contains(node)) open.push_back(node);
  return open;
}

void say_progress(const std::string& sentence) { report::progress_note(sentence); }

std::string program_on_nodes(const RunOptions& options) {
  if (!options.scankit.empty()) return options.scankit;
  return own_program().value_or("scankit");
}

// Inside of an allocation: completes the roster, and launches the nodes that are open. Expected nodes that
// the job does not have are noted with Slurm's reason.
Result<void> run_open_nodes(const RunOptions& options, const SlurmJob& job, bool slurm_options_count,
                            Roster& roster) {
  SCANKIT_TRY(std::vector<std::string> nodes, host_names(job.nodes));
  for (const std::string& node : nodes) {
    roster.nodes.try_emplace(node);
    roster.absent.erase(node);
  }
  if (!options.expect.empty()) {
    SCANKIT_TRY(const auto expected, host_names(options.expect));
    const auto why = unusable_nodes(expected);
    for (const std::string& node : expected)
      if (!roster.nodes.contains(node))
        roster.absent[node] = why.contains(node) ? why.at(node) : say("Slurm did not assign it to this job");
  }
  SCANKIT_CHECK(write_roster(options.out, roster));
  SCANKIT_TRY(const auto before, report_of(options.out));
  const auto open = open_nodes(before, nodes);
  const std::size_t done = nodes.size() - open.size();
  if (done > 0)
    say_progress(say_n(done, "{} node has already answered", "{} nodes have already answered", done));
  if (open.empty()) return {};
  report::Progress progress(say_n(open.size(), "waiting for {} node of job {}",
                                  "waiting for {} nodes of job {}", open.size(), job.id));
  progress.count(0, open.size());
  Launch how{program_on_nodes(options), options.out, open, {}, [&](std::size_t n) {
               progress.count(n, open.size());
             }};
  if (slurm_options_count) how.slurm_options = options.engine_options;
  return launch(how, roster);
}

// Refuses options that select nodes: a step over a part of the job would leave the other nodes
// without an answer.
Result<void> fit_for_a_step(const std::vector<std::string>& options) {
  for (const std::string& option : options)
    for (const char* name : {"-N", "-w", "-x", "-n", "--nodes", "--nodelist", "--exclude", "--ntasks"})
      if (option == name || option.starts_with(std::string(name) + "=") ||
          (name[1] != '-' && option.starts_with(name)))
        return Error{Errc::InvalidArgument, message("{} cannot be used inside an allocation", option),
                     message("every node of the allocation is used; allocate exactly those nodes")};
  return {};
}

int allocate(const RunOptions& options, const Roster& roster) {
  std::vector<std::string> slurm = options.engine_options;
  // A continued fleet asks for exactly the nodes that have not answered.
  if (!roster.nodes.empty()) {
    const auto report = report_of(options.out);
    if (!report) return complained(report.error(), kExitInternal);
    std::vector<std::string> nodes;
    for (const auto& [name, asked] : roster.nodes) nodes.push_back(name);
    auto open = open_nodes(*report, nodes);
    const auto unusable = unusable_nodes(open);
    std::erase_if(open, [&](const std::string& node) { return unusable.contains(node); });
    for (const auto& [node, why] : unusable) say_progress(say("{} is skipped: {}", node, why));
    if (open.empty()) {
      say_progress(say("no node left to query: {} contains the other results", options.out));
      return tell(*report, options.show);
    }
    std::string list;
    for (const std::string& node : open) list += (list.empty() ? "" : ",") + node;
    slurm.insert(slurm.end(), {"--nodes=" + std::to_string(open.size()), "--nodelist=" + list});
  }
  const std::string id = fresh_id();
  ::setenv(kLaunch, id.c_str(), 1);
  const int status = in_allocation(slurm, options.words, [&] {
    const auto after = read_roster(options.out);
    return after && after->launch == id;
  });
  if (status != kExitClean) return status;
  // salloc's own status is 0 even if a signal ended what ran inside, so that the directory decides.
  const auto report = report_of(options.out);
  if (!report) return complained(report.error(), kExitInternal);
  if (exit_status_of(*report, options.show.fail_on) == kExitClean) return kExitClean;
  say_progress(say("the part inside the allocation was stopped; the same command continues it"));
  return tell(*report, options.show);
}

Result<void> prepared(const RunOptions& options) {
  if (options.out.empty())
    return Error{Errc::InvalidArgument, message("--out is missing: the directory for the nodes' results"),
                 message("choose one that all nodes can access")};
  SCANKIT_CHECK(slurm_is_here());
  return make_directories(options.out);
}

}  // namespace

int run_fleet(const RunOptions& given) {
  RunOptions options = given;
  const auto command = checked_command(options.command);
  if (!command) return complained(command.error(), kExitUsage);
  if (!options.out.empty()) options.out = absolute(options.out);
  if (const auto ready = prepared(options); !ready) return complained(ready.error(), kExitUsage);
  const auto job = current_job();
  const bool granted_to_us = job && !environment_value(kLaunch).empty();
  if (job && !granted_to_us)
    if (const auto fits = fit_for_a_step(options.engine_options); !fits)
      return complained(fits.error(), kExitUsage);
  Descriptor lock;
  // The process inside the allocation of an outer `fleet run` must not wait for the lock that the
  // outer one has.
  if (!granted_to_us) {
    auto taken = lock_folder(options.out);
    if (!taken) return complained(taken.error(), kExitUsage);
    lock = std::move(*taken);
  }
  auto roster = roster_for(options, *command);
  if (!roster) return complained(roster.error(), kExitUsage);
  if (!job) return allocate(options, *roster);
  roster->job = job->id;
  roster->launch = environment_value(kLaunch);
  if (const auto ran = run_open_nodes(options, *job, !granted_to_us, *roster); !ran)
    return complained(ran.error(), kExitInconclusive);
  const auto report = report_of(options.out);
  return report ? tell(*report, options.show) : complained(report.error(), kExitInternal);
}

}  // namespace scankit::fleet
