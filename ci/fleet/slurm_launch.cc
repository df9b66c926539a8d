// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "ci/fleet/commands.h"
#include "ci/fleet/node_result.h"
#include "ci/fleet/slurm.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"

// One srun over all nodes that are still open. Its standard output carries the nodes' lines, its standard
// error what Slurm says about them; both are noted in the roster.
namespace scankit::fleet {
namespace {

std::vector<std::string> srun_words(const Launch& how, const Roster& roster, double launched) {
  std::string list;
  for (const std::string& node : how.nodes) list += (list.empty() ? "" : ",") + node;
  const std::string count = std::to_string(how.nodes.size());
  const std::string launched_at = fmt::format("{:.3f}", launched),
                    timeout = fmt::format("{:.0f}", roster.timeout);
  // The end of one node must not end the others, whether it fails, crashes or is simply early
  // (--kill-on-bad-exit=0, --no-kill, --wait=0).
  std::vector<std::string> words = {"srun",
                                    "--nodes=" + count,
                                    "--ntasks=" + count,
                                    "--ntasks-per-node=1",
                                    "--no-kill",
                                    "--kill-on-bad-exit=0",
                                    "--wait=0",
                                    "--input=none",
                                    "--nodelist=" + list,
                                    "--job-name=scankit-fleet"};
  words.insert(words.end(), how.slurm_options.begin(), how.slurm_options.end());
  words.insert(words.end(), {how.scankit, "fleet", "node", "--shared", "--fleet", roster.fleet, "--out",
                             how.out, "--launched", launched_at, "--timeout", timeout, "--command-sha256",
                             roster.command_sha256, "--"});
  words.insert(words.end(), roster.command.begin(), roster.command.end());
  return words;
}

// Finds out which nodes a line of srun's is about: "srun: error: node[2-3]: tasks 1-2: Killed", or any
// other line that contains a node's name as a whole word.
void blame(const std::string& line, const Launch& how, Roster& roster) {
  static const RE2 task("error: ([^ ]+): tasks? [0-9,-]+: (.*)");
  std::string who, what;
  if (RE2::PartialMatch(line, task, &who, &what)) {
    const auto names = who.find('[') == std::string::npos
                           ? Result<std::vector<std::string>>(std::vector<std::string>{who})
                           : host_names(who);
    if (names)
      for (const std::string& name : *names)
        if (const auto found = roster.nodes.find(name); found != roster.nodes.end())
          found->second.problem = what;
    return;
  }
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  for (const std::string& name : how.nodes) {
    const auto at = line.find(name);
    if (at == std::string::npos) continue;
    const auto end = at + name.size();
    if ((at > 0 && in_word(line[at - 1])) || (end < line.size() && in_word(line[end]))) continue;
    if (std::string& problem = roster.nodes[name].problem; problem.empty()) problem = line;
  }
}

// What is seen of the launch while it runs: lines of nodes on standard output, and messages
// on standard error.
class Watch {
 public:
  Watch(const Launch& how, Roster& roster) : how_(how), roster_(roster) {}

  void out(std::string_view bytes) {
    out_.add(bytes, [&](const std::string& line) {
      if (const auto told = line_of(line)) take(*told);
    });
  }
  void err(std::string_view bytes) {
    err_.add(bytes, [&](const std::string& line) {
      said_.push_back(report::plain(line, true));
      if (said_.size() > 200) said_.pop_front();  // a thousand nodes can say the same
    });
  }
  const std::deque<std::string>& said() const { return said_; }
  const std::string& step() const { return step_; }

 private:
  void take(const Line& line) {
    const auto node = roster_.nodes.find(line.node);
    if (node == roster_.nodes.end()) return;
    const auto handed_over = assembler_.add(line);
    if (line.event == "started") {
      node->second.started = now();
      node->second.node_clock = line.clock;
      if (!line.step.empty()) step_ = line.step;
    }
    if (line.event != "done") return;
    node->second.reported = now();
    if (handed_over) keep(node->second, line, *handed_over);
    if (how_.progress) how_.progress(++done_);
  }

  // Writes a file for a node that could not write it itself.
  void keep(AskedNode& node, const Line& line, const std::string& text) {
    node.problem =
        english(message("it could not write its file, and passed it to the launcher: {}", line.text));
    const auto kept = write_file_atomically(path_join(how_.out, node_file_name(line.node)), text);
    if (!kept) node.problem = english(kept.error().message);
  }

  const Launch& how_;
  Roster& roster_;
  LineCutter out_, err_;
  Assembler assembler_;
  std::deque<std::string> said_;
  std::string step_;
  std::size_t done_ = 0;
};

}  // namespace

Result<void> launch(const Launch& how, Roster& roster) {
  const double launched = now();
  for (const std::string& node : how.nodes) {
    roster.nodes[node] = {};
    roster.nodes[node].asked = launched;
  }
  SCANKIT_CHECK(write_roster(how.out, roster));
  Watch watch(how, roster);
  ProcessRequest request;
  request.argv = srun_words(how, roster, launched);
  request.timeout = node_deadline(static_cast<int>(roster.timeout));
  request.output_limit = 0;
  request.on_out = [&](std::string_view bytes) { watch.out(bytes); };
  request.on_err = [&](std::string_view bytes) { watch.err(bytes); };
  SCANKIT_TRY(const auto ran, run_process(request));
  // If srun is killed, its tasks go on until the allocation ends; scancel ends the step.
  if (ran.timed_out && !watch.step().empty()) {
    ProcessRequest cancel;
    cancel.argv = {"scancel", watch.step()};
    (void)run_process(cancel).has_value();
  }
  for (const std::string& line : watch.said()) blame(line, how, roster);
  for (const std::string& node : how.nodes) {
    AskedNode& asked = roster.nodes[node];
    asked.over = true;
    asked.gave_up = ran.timed_out && asked.reported == 0;
  }
  roster.said.clear();
  for (const std::string& line : watch.said())
    if (const auto explained = explain_slurm(line))
      if (std::ranges::find(roster.said, explained->sentence) == roster.said.end())
        roster.said.push_back(explained->sentence);
  return write_roster(how.out, roster);
}

}  // namespace scankit::fleet
