// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ci/fleet/node_result.h"
#include "ci/fleet/roster.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/document.h"

// The answers of all nodes, merged, compared and shown.
namespace scankit::fleet {

// The content of a directory of results, as it was read. Nothing in it is judged yet.
struct Collected {
  std::string folder;
  std::optional<Roster> roster;
  Message roster_problem;  // why there is none
  struct File {
    std::string name;  // in the folder; of a log with its line: "fleet.log:12"
    ReadNode read;
  };
  std::vector<File> files;            // by name
  std::vector<std::string> expected;  // named by the user, in addition to the roster
};
Result<Collected> collect(const std::string& folder);

// How a node is counted. Unknown is never green: only an answer of status 0 is Passed.
enum class Verdict { Passed, Failed, Unknown };
// One node of the report.
struct NodeEvent {
  std::string name;
  Verdict verdict = Verdict::Unknown;
  std::string state;    // a slug for programs: "answered", "never_answered", ...; README.md lists them
  Message why;          // one sentence; empty where it passed
  int exit_status = 0;  // of an answer
  std::optional<NodeResult> result;
  std::vector<Message> notes;
  double clock_low = 0,
         clock_high = 0;  // by how many seconds its clock is ahead of the launcher's, at least and at most
  bool clock_known = false, clock_apart = false;
};

// A fact in which nodes differ.
struct Difference {
  std::string fact, common;  // the value that most nodes have; "" where no half of them agrees
  std::size_t agreeing = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> others;  // value, nodes
  std::vector<std::string> with_it;  // facts that differ because this one does, between the same nodes
};
// A measured number of a node that is far from the median of its kind.
struct Outlier {
  std::string node, measure, unit, kind;  // kind: the hardware that it was compared among
  double value = 0, median = 0, spread = 0;
  bool worse = false;      // slower, or less exact
  bool disturbed = false;  // the machine was busy: no warning
};
// A file in the directory that does not count.
struct Stray {
  std::string file, kind;  // "foreign", "truncated", "damaged", "newer", "duplicate", "other_fleet", "log"
  Message why;
};
// A cause with the nodes on which it was found.
struct CauseLine {
  Cause cause;
  std::vector<std::string> nodes;
};

// Everything that the output formats print.
struct FleetReport {
  std::string folder, fleet, engine, tool_version;
  std::vector<std::string> command;
  std::vector<NodeEvent> nodes;  // by name
  std::vector<CauseLine> causes;
  std::map<std::string, std::string> common;  // facts that most nodes share
  std::vector<Difference> differences;
  std::vector<Outlier> outliers;
  std::vector<Measure> medians;  // of each measure over all nodes
  std::vector<Stray> strays;
  std::vector<Message> notes;     // about the fleet as a whole
  std::vector<Message> problems;  // of it: why it cannot be green
  std::size_t count(Verdict verdict) const;
  std::size_t warnings() const;
};
FleetReport merged(const Collected& collected);

void compare_facts(FleetReport& report);
void find_outliers(FleetReport& report);
void judge_clock(NodeEvent& node, const AskedNode* asked);

// The exit status of the report, by the precedence of gate_status(). `fail_on`: "error",
// "warning" or "never".
int exit_status_of(const FleetReport& report, const std::string& fail_on);

// What a command printed with --json, in brief: for doctor, env check and validate itself, for
// ci its steps.
Summary summarised(std::string_view json);

// Facts that the nodes of one fleet should share, by name. Where they differ may be what is wrong with a
// node. A fact that could not be read has a value that says so.
using Facts = std::map<std::string, std::string>;
Facts facts_of(const Snapshot& snapshot);

// Of the records of a node's environments (DIR/.scankit/record.json): "record" is that of its Python, whose
// prefix this is, and "record:DIR" one that the command or its policy names. Besides the signature, "record
// lock", "record changes" and "record package numpy".
Facts record_facts(const std::vector<std::string>& command, const std::string& prefix);
inline constexpr std::string_view kLockFact = " lock", kChangesFact = " changes", kPackageFact = " package ";

inline constexpr const char* kReportSchema = "urn:scankit:fleet-report:1";  // schema/fleet-report-1.json

// For people: what is wrong first; a thousand healthy nodes are one line.
std::string text_report(const FleetReport& report, const report::TextStyle& style);
std::string json_report(const FleetReport& report, int exit_status);  // English, for programs
report::Document fleet_document(const FleetReport& report, int exit_status);
// `report` must outlive the views.
report::Views fleet_views(const FleetReport& report, int exit_status);

// "2 nodes failed, 3 nodes are unknown, 995 of 1000 passed; 1 warning".
std::string verdict_line(const FleetReport& report);
std::string_view verdict_word(const FleetReport& report);  // "healthy", "broken", "unknown"
// "node1, node2, node3 and 41 more".
std::string node_names(const std::vector<std::string>& nodes, std::size_t most = 8);
std::string difference_line(const Difference& difference);
std::string outlier_line(const Outlier& outlier);
std::string command_line(const std::vector<std::string>& command);  // "scankit doctor --no-import"

}  // namespace scankit::fleet
