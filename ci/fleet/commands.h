// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ci/fleet/report.h"
#include "doctor/base/result.h"
#include "doctor/cli/reports.h"

namespace CLI {
class App;
}  // namespace CLI

// What the parsed command lines do; cli.cc parses.
namespace scankit::fleet {

// The options of `fleet run --k8s`.
struct KubernetesOptions {
  std::string kind = "daemonset", image, claim, name_space, out;
  int nodes = 0, gpus = 0;
  std::vector<std::string> node_selector;  // "KEY=VALUE"
};

struct RunOptions {
  bool slurm = false, kubernetes = false;
  std::vector<std::string> engine_options;  // Slurm's own, as they were given
  std::vector<std::string> command;         // behind "--"
  std::vector<std::string> words;           // the whole line, to be given again inside an allocation
  std::string out;
  int timeout = 900;    // seconds that a node has
  std::string expect;   // nodes in addition to those of the allocation
  std::string scankit;  // path of scankit on the nodes
  KubernetesOptions manifest;
  cli::ShowOptions show;
};
int run_fleet(const RunOptions& options);
int run_kubernetes(const RunOptions& options);
// What it writes: comments that say what to do with it, and the manifest.
std::string kubernetes_manifest(const RunOptions& options, const std::vector<std::string>& command,
                                const std::string& fleet);

// The options of the hidden `fleet node`; the launcher writes them.
struct NodeOptions {
  std::string fleet, out, node, command_sha256;
  double launched = 0;
  int timeout = 900;
  bool shared = false;  // the launcher's fleet.json must be seen in `out`
  bool stay = false;    // wait for the end instead of ending: a DaemonSet starts anew whatever ends
  std::vector<std::string> command;
};
int run_node(const NodeOptions& options);

struct ReportOptions {
  std::string folder, expect;
  cli::ShowOptions show;
};
int run_report(const ReportOptions& options);

Result<FleetReport> report_of(const std::string& folder, const std::vector<std::string>& expected = {});

// Prints the answer, writes the reports, and returns the exit status that both come to.
int tell(const FleetReport& report, const cli::ShowOptions& options);

// Which command a fleet runs, as scankit itself is called: "ci" gets its "run". An error names the possible.
Result<std::vector<std::string>> checked_command(std::vector<std::string> command);
// Files that the command names, by option, with their sha256; those that cannot be read are left out.
std::map<std::string, std::string> input_hashes(const std::vector<std::string>& command);
std::string command_hash(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& inputs);
// The value of --NAME V or --NAME=V; "" where it is not there.
std::string option_value(const std::vector<std::string>& command, const std::string& name);

double now();  // seconds since 1970
std::string fresh_id();

// Of our own environment; "" where it is not set.
std::string environment_value(const char* name);

// scankit fleet ... `exit_status` is set when a command of these runs. `words`, the command line, loses those
// that are for Slurm and for the nodes: CLI11 would take them for ours.
void add_fleet_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words);

}  // namespace scankit::fleet
