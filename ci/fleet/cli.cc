// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "ci/fleet/commands.h"
#include "ci/fleet/report.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/reports.h"
#include "doctor/command_line/command_line.h"

// The command line of `scankit fleet`. CLI11 must not see the words behind "--" and the options for Slurm, so
// that take_words() removes them first.
namespace scankit::fleet {
namespace {

// What CLI11 does not see: the command behind "--", and the options for Slurm.
struct Taken {
  std::vector<std::string> engine_options, command;
};

bool takes_no_value(const std::string& option) {
  return option == "--slurm" || option == "--json" || option == "--verbose" || option == "-v" ||
         option == "--help" || option == "-h";
}

// Behind --slurm an option that is not in this list goes to Slurm. A new option of `fleet run` must
// be added here.
bool is_ours(const std::string& option) {
  static const std::vector<std::string> ours = {"--out",    "--timeout", "--expect", "--scankit",
                                                "--report", "--fail-on", "--color"};
  const std::string name = option.substr(0, option.find('='));
  return takes_no_value(name) || std::ranges::find(ours, name) != ours.end();
}

// Only for `fleet run` and `fleet node`. The value of an own option ("--out DIR") stays with it; what
// follows an option of Slurm's goes to Slurm, too, since nobody here knows whether it takes a value.
Taken take_words(std::vector<std::string>& words) {
  Taken taken;
  const auto fleet_at = std::ranges::find(words, "fleet");
  if (fleet_at == words.end() || fleet_at + 1 == words.end() ||
      (*(fleet_at + 1) != "run" && *(fleet_at + 1) != "node"))
    return taken;
  if (const auto dashes = std::find(fleet_at, words.end(), "--"); dashes != words.end()) {
    taken.command.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  const auto slurm = std::ranges::find(words, "--slurm");
  if (slurm == words.end()) return taken;
  std::vector<std::string> kept(words.begin(), slurm + 1);
  for (auto word = slurm + 1; word != words.end(); ++word) {
    if (!is_ours(*word)) {
      taken.engine_options.push_back(*word);
      continue;
    }
    kept.push_back(*word);
    const bool value_follows = !takes_no_value(*word) && word->find('=') == std::string::npos;
    if (value_follows && word + 1 != words.end()) kept.push_back(*++word);
  }
  words = std::move(kept);
  return taken;
}

void add_show(CLI::App& command, cli::ShowOptions& options) {
  cli::add_report_options(command, options);
  command
      .add_option(
          "--fail-on", options.fail_on,
          say("what counts as a failure: error (a node failed), warning (nodes differ as well) or never"))
      ->check(CLI::IsMember({"error", "warning", "never"}))
      ->capture_default_str();
  command.add_option("--color", options.color, say("when to use colour"))
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command.add_flag("-v,--verbose", options.verbose, say("show the answer of every node"));
}

void check_show(const cli::ShowOptions& options) {
  if (const std::string clash = cli::report_clash(options.reports, options.json); !clash.empty())
    throw CLI::ValidationError(clash);
}

void add_manifest(CLI::App& command, KubernetesOptions& options) {
  command
      .add_option("--k8s-kind", options.kind, say("daemonset (every node) or job (as many as --k8s-nodes)"))
      ->check(CLI::IsMember({"daemonset", "job"}))
      ->capture_default_str();
  command.add_option("--image", options.image, say("container image with scankit and the Python to look at"))
      ->type_name("IMAGE");
  command
      .add_option("--claim", options.claim,
                  say("volume claim for the results, shared by all nodes; without it they go to the log"))
      ->type_name("NAME");
  command.add_option("--namespace", options.name_space, say("namespace in Kubernetes"))->type_name("NAME");
  command.add_option("--k8s-nodes", options.nodes, say("number of nodes of a job"))
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command.add_option("--gpus", options.gpus, say("GPUs to request on each node (nvidia.com/gpu)"))
      ->type_name("N")
      ->check(CLI::Range(0, 64));
  command
      .add_option("--node-selector", options.node_selector,
                  say("only nodes with this label; repeat for several"))
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_run(CLI::App& fleet_command, int& exit_status, const Taken& taken,
             const std::vector<std::string>& all) {
  const auto options = std::make_shared<RunOptions>();
  options->engine_options = taken.engine_options;
  options->command = taken.command;
  options->words = all;
  CLI::App* command =
      fleet_command.add_subcommand("run", say("run doctor, validate, env check or ci on every node"));
  note(*command, {.examples = {"scankit fleet run --slurm -N4 --out results -- doctor",
                               "scankit fleet run --k8s --image registry/train:1 --out fleet.yaml -- doctor"},
                  .statuses = {},
                  .trailing = say("-- <COMMAND>")});
  begin_group(*command, group_of_input());
  auto* slurm = command->add_flag(
      "--slurm", options->slurm,
      say("use srun, in this allocation or a new one; unknown options between --slurm and -- are "
          "passed to Slurm"));
  auto* kubernetes = command->add_flag("--k8s", options->kubernetes, say("write a manifest for Kubernetes"))
                         ->excludes(slurm);
  (void)kubernetes;
  command
      ->add_option("--out", options->out,
                   say("directory for the results, shared by all nodes; with --k8s the manifest to write"))
      ->type_name("PATH");
  command->add_option("--timeout", options->timeout, say("time limit of each node"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--expect", options->expect,
                   say("nodes that must answer in addition to those of the allocation: node[1-4]"))
      ->type_name("NODES");
  command
      ->add_option("--scankit", options->scankit,
                   say("path of scankit on the nodes [default: the same as here]"))
      ->type_name("PATH");
  begin_group(*command, say("Kubernetes"));
  add_manifest(*command, options->manifest);
  begin_group(*command, group_of_output());
  add_show(*command, options->show);
  command->callback([options, &exit_status] {
    check_show(options->show);
    if (!options->slurm && !options->kubernetes) throw CLI::ValidationError(say("choose --slurm or --k8s"));
    exit_status = options->slurm ? run_fleet(*options) : run_kubernetes(*options);
  });
}

// What srun and Kubernetes start on each node. It is not for people, and does not appear in the help.
void add_node(CLI::App& fleet_command, int& exit_status, const Taken& taken) {
  const auto options = std::make_shared<NodeOptions>();
  options->command = taken.command;
  CLI::App* command = fleet_command.add_subcommand("node", "")->group("");
  command->add_option("--fleet", options->fleet, "")->required();
  command->add_option("--out", options->out, "");
  command->add_option("--node", options->node, "");
  command->add_option("--command-sha256", options->command_sha256, "");
  command->add_option("--launched", options->launched, "");
  command->add_option("--timeout", options->timeout, "");
  command->add_flag("--shared", options->shared, "");
  command->add_flag("--stay", options->stay, "");
  command->callback([options, &exit_status] { exit_status = run_node(*options); });
}

void add_report(CLI::App& fleet_command, int& exit_status) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = fleet_command.add_subcommand(
      "report", say("merge a directory of results: which nodes failed, differ, are slow, or did not answer"));
  note(*command, {.examples = {"scankit fleet report results",
                               "scankit fleet report results --expect 'node[1-4]' --report html=fleet.html"},
                  .statuses = {},
                  .trailing = {}});
  command->add_option("directory", options->folder, say("directory with the results"))
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--expect", options->expect,
                   say("nodes that must have answered: a,b,c or node[1-4], or @FILE with one name per line"))
      ->type_name("NODES");
  add_show(*command, options->show);
  command->callback([options, &exit_status] {
    check_show(options->show);
    exit_status = run_report(*options);
  });
}

}  // namespace

// The whole command line is kept as well, because an allocation runs it again.
void add_fleet_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words) {
  const std::vector<std::string> all = words;
  const Taken taken = take_words(words);
  CLI::App* command =
      app.add_subcommand("fleet", say("run scankit on every node of a cluster, and merge the answers"));
  command->require_subcommand(1);
  add_run(*command, exit_status, taken, all);
  add_report(*command, exit_status);
  add_node(*command, exit_status, taken);
}

}  // namespace scankit::fleet
