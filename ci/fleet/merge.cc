// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "ci/fleet/report.h"
#include "ci/gate/gate.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"

// Merges what a directory contains into one report. Every node that was expected appears in it, and the
// rule is that unknown is never green: a node passes only with a whole result of status 0 for this fleet
// and this command.
namespace scankit::fleet {
namespace {

using FilePointers = std::vector<const Collected::File*>;

std::string_view state_word(TextState state) {
  switch (state) {
    case TextState::Truncated:
      return "truncated";
    case TextState::Damaged:
      return "damaged";
    case TextState::Newer:
      return "newer";
    default:
      return "foreign";
  }
}

// The fleet's id from the roster; without one, the id that most of the files have.
std::string fleet_of(const Collected& collected) {
  if (collected.roster) return collected.roster->fleet;
  std::map<std::string, std::size_t> seen;
  for (const auto& file : collected.files)
    if (file.read.state == TextState::Whole) ++seen[file.read.node.fleet];
  const auto most = std::ranges::max_element(seen, {}, [](const auto& entry) { return entry.second; });
  return most == seen.end() ? "" : most->first;
}

bool same_answer(const NodeResult& a, const NodeResult& b) {
  return a.started == b.started && a.ended == b.ended && a.end == b.end && a.exit_status == b.exit_status;
}

// Of several results of one node: the file under the name that the node itself writes, else the latest.
const Collected::File& counted(const FilePointers& files) {
  const auto& node = files.front()->read.node.node;
  for (const auto* file : files)
    if (file->name == node_file_name(node)) return *file;
  return **std::ranges::max_element(files, {}, [](const auto* file) { return file->read.node.ended; });
}

// What a whole result says. Only statuses of "something was found" make a node Failed; usage errors,
// internal errors and statuses that scankit does not have leave it Unknown.
void judge_answer(NodeEvent& line) {
  const NodeResult& r = *line.result;
  line.exit_status = r.exit_status;
  line.state = "answered";
  if (r.end != "exited") {
    line.state = r.end == "timed out" ? "timed_out" : r.end == "killed" ? "killed" : "not_started";
    line.why = r.end == "timed out" ? message("the command exceeded its time limit")
               : r.end == "killed"  ? message("the command was killed by signal {}", r.signal)
                                    : message("the command could not be started: {}", r.said);
    return;
  }
  const Summary& s = r.summary;
  const auto error = std::ranges::find(s.causes, "error", &Cause::severity);
  if (s.verdict.empty())
    line.why = message("the command exited with status {} and no result: {}", r.exit_status, r.said);
  else if (r.exit_status == kExitClean)
    line.verdict = Verdict::Passed;
  else if (r.exit_status == kExitUsage || r.exit_status == kExitInternal || r.exit_status > kExitDrift)
    line.why = message("the command exited with status {}: {}", r.exit_status, r.said);
  else if (r.exit_status == kExitInconclusive && s.verdict == "empty")
    line.why = message("nothing to check: neither PyTorch nor a compiled CUDA extension was found");
  else if (r.exit_status == kExitInconclusive)
    line.why = s.unknown.empty() ? message("inconclusive: {}", r.said)
                                 : message("inconclusive: {}", s.unknown.front());
  else
    line.verdict = Verdict::Failed;
  if (line.verdict != Verdict::Failed) return;
  if (error != s.causes.end())
    line.why = error->cause + ": " + error->summary;
  else if (!s.failures.empty())
    line.why = message_n(s.failed, "{} result is wrong: {} ({})", "{} results are wrong, the first: {} ({})",
                         s.failed, s.failures.front().what, s.failures.front().why);
  else
    line.why = message("the command exited with status {}: {}", r.exit_status, r.said);
}

// Why there is no whole result of a node, from its damaged file or from what the launcher saw.
void judge_silence(NodeEvent& line, const Collected& collected) {
  for (const auto& file : collected.files)
    if (file.name == node_file_name(line.name) && file.read.state != TextState::Whole) {
      line.state = state_word(file.read.state);
      line.why = message("its file cannot be used: {}", file.read.why);
      return;
    }
  line.state = "never_answered";
  line.why = message("it never answered");
  if (!collected.roster) return;
  if (const auto absent = collected.roster->absent.find(line.name);
      absent != collected.roster->absent.end()) {
    line.state = "not_allocated";
    line.why = message("it was not in the allocation: {}", absent->second);
    return;
  }
  const auto found = collected.roster->nodes.find(line.name);
  if (found == collected.roster->nodes.end()) return;
  const AskedNode& asked = found->second;
  if (asked.gave_up && asked.started > 0 && asked.problem.empty()) {
    line.state = "hung";
    line.why = message("it started, but had not answered after its {} s and the launcher's grace period",
                       collected.roster->timeout);
  } else if (asked.gave_up && asked.started == 0) {
    line.why = message("it did not start within {} s", collected.roster->timeout);
  } else if (asked.reported > 0) {
    line.state = "no_file";
    line.why = message("it reported that it wrote its file, which is not in this directory");
  } else if (asked.started > 0 && asked.over) {  // Slurm's own words follow
    line.state = "lost";
    line.why = message("it started, but ended without an answer");
  } else if (asked.over) {
    line.state = "not_started";
    line.why = message("it could not be started");
  } else if (asked.started > 0 || asked.asked > 0) {
    line.why = message("the launcher ended before it answered");
  }
  if (!asked.problem.empty()) line.why = message("{}: {}", line.why, asked.problem);
}

// Chooses one result. Copies of it are reported as strays; a result of another status makes the node
// Unknown, since nobody knows which one is true.
void judge_files(NodeEvent& line, const FilePointers& files, FleetReport& report) {
  const auto& chosen = counted(files);
  line.result = chosen.read.node;
  judge_answer(line);
  for (const auto* file : files) {
    if (file == &chosen) continue;
    const bool same = same_answer(file->read.node, *line.result);
    if (same && file->name.find(':') != std::string::npos) continue;  // the same by file and by log
    report.strays.push_back(
        {file->name, "duplicate",
         same ? message("it is a copy of {}", chosen.name)
              : message("{} is from the same node {} but differs", chosen.name, line.name)});
    if (same || file->read.node.exit_status == line.exit_status) continue;
    line.verdict = Verdict::Unknown;
    line.state = "conflicting";
    line.why = message("its two results disagree: {} and {}", chosen.name, file->name);
  }
}

// A node that read another policy or spec than the launcher has answered another question.
void judge_inputs(NodeEvent& line, const Roster& roster) {
  for (const auto& [option, hash] : roster.inputs) {
    const auto seen = line.result->inputs.find(option);
    if (seen == line.result->inputs.end() || seen->second == hash) continue;
    line.verdict = Verdict::Unknown;
    line.state = "other_input";
    line.why = message("the contents of {} differ from those on the launcher", option);
  }
}

void note_of_roster(NodeEvent& line, const Roster& roster) {
  const auto asked = roster.nodes.find(line.name);
  if (asked == roster.nodes.end()) {
    line.notes.push_back(message("it answered, but is not one of the requested nodes"));
    return;
  }
  if (line.result && !asked->second.problem.empty()) line.notes.push_back(asked->second.problem);
}

// The whole results of this fleet and command, by node. All other files become strays.
std::map<std::string, FilePointers> sorted_out(const Collected& collected, FleetReport& report) {
  std::map<std::string, FilePointers> of_node;
  for (const auto& file : collected.files) {
    if (file.read.state != TextState::Whole)
      report.strays.push_back({file.name, std::string(state_word(file.read.state)), file.read.why});
    else if (file.read.node.fleet != report.fleet ||
             (collected.roster && file.read.node.command_sha256 != collected.roster->command_sha256))
      report.strays.push_back({file.name, "other_fleet",
                               message("it belongs to fleet {}, node {}; this one is {}",
                                       file.read.node.fleet, file.read.node.node, report.fleet)});
    else
      of_node[file.read.node.node].push_back(&file);
  }
  return of_node;
}

// One line for each cause with the nodes that have it: errors first, and what most nodes have first.
void take_causes(FleetReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, CauseLine> lines;
  for (const NodeEvent& node : report.nodes) {
    if (!node.result) continue;
    for (const Cause& cause : node.result->summary.causes) {
      CauseLine& line = lines[{cause.severity, cause.cause, cause.summary}];
      line.cause = cause;
      if (line.nodes.empty() || line.nodes.back() != node.name) line.nodes.push_back(node.name);
    }
  }
  for (auto& [key, line] : lines) report.causes.push_back(std::move(line));
  std::ranges::stable_sort(report.causes, [](const CauseLine& a, const CauseLine& b) {
    const auto rank = [](const CauseLine& c) {
      return c.cause.severity == "error" ? 0 : c.cause.severity == "warning" ? 1 : 2;
    };
    return std::pair(rank(a), b.nodes.size()) < std::pair(rank(b), a.nodes.size());
  });
}

void take_nodes(const Collected& collected, FleetReport& report) {
  const auto of_node = sorted_out(collected, report);
  std::set<std::string> names(collected.expected.begin(), collected.expected.end());
  for (const auto& [name, files] : of_node) names.insert(name);
  if (collected.roster) {
    for (const auto& [name, asked] : collected.roster->nodes) names.insert(name);
    for (const auto& [name, why] : collected.roster->absent) names.insert(name);
  }
  for (const std::string& name : names) {
    NodeEvent line;
    line.name = name;
    const AskedNode* asked = nullptr;
    if (collected.roster && collected.roster->nodes.contains(name)) asked = &collected.roster->nodes.at(name);
    if (const auto files = of_node.find(name); files != of_node.end())
      judge_files(line, files->second, report);
    else
      judge_silence(line, collected);
    if (collected.roster && line.result) {
      judge_inputs(line, *collected.roster);
      note_of_roster(line, *collected.roster);
    }
    judge_clock(line, asked);
    report.nodes.push_back(std::move(line));
  }
}

// Without a roster, what all nodes were asked; empty where they were asked different things.
std::vector<std::string> one_command(const std::vector<NodeEvent>& nodes) {
  const std::vector<std::string>* command = nullptr;
  for (const NodeEvent& line : nodes) {
    if (!line.result) continue;
    if (command != nullptr && *command != line.result->command) return {};
    command = &line.result->command;
  }
  return command == nullptr ? std::vector<std::string>() : *command;
}

}  // namespace

FleetReport merged(const Collected& collected) {
  FleetReport report;
  report.folder = collected.folder;
  report.fleet = fleet_of(collected);
  if (collected.roster) {
    report.engine = collected.roster->engine;
    report.command = collected.roster->command;
    report.tool_version = collected.roster->tool_version;
    report.notes.assign(collected.roster->said.begin(), collected.roster->said.end());
  }
  take_nodes(collected, report);
  if (report.command.empty()) report.command = one_command(report.nodes);
  if (!collected.roster && collected.expected.empty()) report.problems.push_back(collected.roster_problem);
  if (report.nodes.empty()) report.problems.push_back(message("no fleet node found in {}", collected.folder));
  take_causes(report);
  compare_facts(report);
  find_outliers(report);
  return report;
}

std::size_t FleetReport::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(nodes, verdict, &NodeEvent::verdict));
}

// A slow node that had other work to do is no warning.
std::size_t FleetReport::warnings() const {
  const auto apart = std::ranges::count(nodes, true, &NodeEvent::clock_apart);
  const auto worse =
      std::ranges::count_if(outliers, [](const Outlier& o) { return o.worse && !o.disturbed; });
  return differences.size() + static_cast<std::size_t>(apart + worse);
}

// An unknown node counts whatever --fail-on says.
int exit_status_of(const FleetReport& report, const std::string& fail_on) {
  std::vector<int> statuses;
  for (const NodeEvent& node : report.nodes) {
    const bool ours = node.exit_status == kExitInternal || node.exit_status == kExitUsage;
    if (node.verdict == Verdict::Unknown)
      statuses.push_back(node.state == "answered" && ours ? node.exit_status : kExitInconclusive);
    else if (node.verdict == Verdict::Failed && fail_on != "never")
      statuses.push_back(node.exit_status);
  }
  if (!report.problems.empty()) statuses.push_back(kExitInconclusive);
  if (fail_on == "warning" && report.warnings() > 0) statuses.push_back(kExitFindings);
  return gate::gate_status(statuses);
}

}  // namespace scankit::fleet
