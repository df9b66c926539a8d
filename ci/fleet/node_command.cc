// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ci/fleet/commands.h"
#include "ci/fleet/node_result.h"
#include "ci/fleet/report.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/escape.h"

// `scankit fleet node`: what runs on each node. It runs the command as a child, collects the node's facts,
// writes one file, and tells the launcher on standard output when it started and when it is done.
namespace scankit::fleet {
namespace {

// The same program, even if its path is not in PATH or was replaced meanwhile.
constexpr const char* kSelf = "/proc/self/exe";

// --node, else what Kubernetes or Slurm calls the node, else its host name.
std::string name_of_this_node(const NodeOptions& options) {
  for (const std::string& name :
       {options.node, environment_value("SCANKIT_NODE"), environment_value("SLURMD_NODENAME")})
    if (!name.empty()) return name;
  char name[256] = "";
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "?";
}

// The last line of a text, of which at most the last 400 bytes count.
std::string end_of(const std::string& text) {
  std::string end = text.substr(text.size() - std::min<std::size_t>(text.size(), 400));
  while (end.ends_with('\n')) end.pop_back();
  if (const auto line = end.rfind('\n'); line != std::string::npos) end.erase(0, line + 1);
  return report::plain(end, true);
}

// Looks at the Python and the modules of the command, so that the facts are about the same environment.
Result<std::string> separate_snapshot(const NodeOptions& options) {
  ProcessRequest request;
  request.argv = {kSelf, "snapshot", "--no-import"};
  // The environment of a record is the one that the command is about.
  if (const std::string folder = option_value(options.command, "--record"); !folder.empty())
    request.argv.insert(request.argv.end(), {"--python", folder});
  for (const char* name : {"--python", "--module"}) {
    const std::string value = option_value(options.command, name);
    const bool file = std::string_view(name) == "--module" && value.find('/') != std::string::npos;
    if (value.empty() || file) continue;
    request.argv.insert(request.argv.end(), {name, value});
  }
  request.timeout = facts_limit(options.timeout);
  request.output_limit = 64u << 20;
  SCANKIT_TRY(auto ran, run_process(request));
  if (ran.timed_out) return Error{Errc::Timeout, message("reading the facts exceeded its time limit"), ""};
  if (ran.signal != 0)
    return Error{Errc::ToolFailed, message("reading the facts was ended by signal {}", ran.signal), ""};
  return std::move(ran.out);
}

// The facts come from the snapshot that doctor wrote, or else from a snapshot of their own, and from the
// records of its environments. A node without
// facts still has its answer.
void take_facts(const NodeOptions& options, const std::string& left, NodeResult& node) {
  auto text = left.empty() ? Result<std::string>(Error{Errc::NotFound, "", ""}) : read_whole_file(left);
  if (!text) text = separate_snapshot(options);
  const auto snapshot = text ? snapshot_from_json(*text) : Result<Snapshot>(text.error());
  if (snapshot)
    node.facts = facts_of(*snapshot);
  else
    node.facts_problem = english(snapshot.error().message);
  node.facts.merge(record_facts(options.command, snapshot ? snapshot->python.value.prefix : ""));
}

// Runs the command and returns its JSON, or "". `facts` is the file into which doctor writes its snapshot,
// so that the node is not looked at twice.
std::string run_command(const NodeOptions& options, const std::string& facts, NodeResult& node) {
  ProcessRequest request;
  request.argv = {kSelf};
  request.argv.insert(request.argv.end(), options.command.begin(), options.command.end());
  if (std::ranges::find(options.command, "--json") == options.command.end())
    request.argv.emplace_back("--json");
  if (!facts.empty()) request.argv.insert(request.argv.end(), {"--snapshot", facts});
  request.timeout = std::chrono::seconds(options.timeout);
  request.output_limit = 256u << 20;
  const auto ran = run_process(request);
  if (!ran) {
    node.end = "not started";
    node.said = english(ran.error().message);
    return "";
  }
  node.end = ran->timed_out ? "timed out" : ran->signal != 0 ? "killed" : "exited";
  node.exit_status = ran->exit_code;
  node.signal = ran->signal;
  node.said = end_of(ran->err);
  node.summary = summarised(ran->out);
  return ran->out;
}

// With --shared the directory must be the launcher's: another one of the same name, such as a local disk,
// would take the file and nobody would read it.
Result<void> write_result(const NodeOptions& options, const std::string& node, const std::string& text) {
  if (options.out.empty()) return Error{Errc::NotFound, message("no directory was given"), ""};
  if (options.shared) {
    const auto roster = read_roster(options.out);
    if (!roster || roster->fleet != options.fleet)
      return Error{Errc::NotFound, message("the launcher's directory {} is not visible here", options.out),
                   ""};
  } else {
    SCANKIT_CHECK(make_directories(options.out));
  }
  return write_file_atomically(path_join(options.out, node_file_name(node)), text);
}

void tell_launcher(const Line& line) {
  std::fputs(line_text(line).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

int run_node(const NodeOptions& options) {
  NodeResult node;
  node.fleet = options.fleet;
  node.node = name_of_this_node(options);
  node.tool_version = kToolVersion;
  node.command = options.command;
  node.command_sha256 = options.command_sha256;
  node.inputs = input_hashes(options.command);
  node.launched = options.launched;
  node.started = now();
  const std::string step = environment_value("SLURM_JOB_ID") + "." + environment_value("SLURM_STEP_ID");
  tell_launcher({"started", node.node, node.started, step.size() > 1 ? step : "", ""});
  const auto scratch = TemporaryDirectory::create("scankit-fleet-node");
  const bool leaves_facts = scratch && !options.command.empty() && options.command.front() == "doctor" &&
                            option_value(options.command, "--snapshot").empty();
  const std::string facts = leaves_facts ? path_join(scratch->path(), "facts.json") : "";
  const std::string result = run_command(options, facts, node);
  take_facts(options, facts, node);
  node.ended = now();
  const std::string text = node_text(node, result);
  // A node that cannot write its file sends it through standard output.
  const auto written = write_result(options, node.node, text);
  if (!written) std::fputs(as_parts(node.node, text).c_str(), stdout);
  const bool handed_over = !written && !options.out.empty();
  tell_launcher({"done", node.node, node.ended, "", handed_over ? english(written.error().message) : ""});
  if (options.stay) {
    // The first process of a container has no default actions for signals (pid_namespaces(7)): without a
    // handler it ignores SIGTERM and has to be killed.
    ::signal(SIGTERM, [](int) { ::_exit(kExitClean); });
    for (;;) ::pause();
  }
  return std::ferror(stdout) == 0 ? kExitClean : kExitInternal;
}

}  // namespace scankit::fleet
