// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"

// What one node of a fleet has to say, as the one file that it writes.
namespace scankit::fleet {

inline constexpr int kNodeSchema = 1;  // ci/fleet/schema/fleet-node-1.json

struct Cause {
  std::string cause, severity, subject, summary;  // as in the JSON of doctor
};
struct Failure {
  std::string what, why;  // "cpu q011-fp32-...", one line
};
// A measured number that should be the same on nodes of the same kind. Measures are compared by
// name and unit.
struct Measure {
  std::string name, unit;  // "cuda:0 fwd float32 B8 D2048 L2048 N16 cold", "ms"
  double value = 0;
  bool disturbed = false;  // taken while the machine had something else to do
};

// The command's JSON in brief. A thousand nodes are merged from their summaries; the complete JSON is in
// the same file.
struct Summary {
  std::string verdict;  // the command's word; "" where it printed no JSON
  std::vector<Cause> causes;
  std::vector<Failure> failures;
  std::size_t failed = 0;            // how many there were; `failures` holds the first
  std::vector<std::string> unknown;  // what it could not find out
  std::vector<Measure> measures;
};

// The header of a node's file.
struct NodeResult {
  std::string fleet, node, tool_version;
  std::vector<std::string> command;           // "doctor", "--python", ...
  std::string command_sha256;                 // of it, and of the files that it names, on the launcher
  std::map<std::string, std::string> inputs;  // those files as this node sees them: "--policy", sha256
  double launched = 0;                        // seconds since 1970 by the launcher's clock; 0: it told none
  double started = 0, ended = 0;              // by the node's
  std::string end;                            // "exited", "timed out", "killed", "not started"
  int exit_status = 0, signal = 0;
  std::string said;  // the end of what it wrote to standard error
  std::map<std::string, std::string> facts;
  std::string facts_problem;  // why there are none
  Summary summary;
};

// `result`: the command's JSON, "" for none. One line that ends with its own digest.
std::string node_text(const NodeResult& node, std::string_view result);
// The last step of it: `body` is such a file up to its digest.
std::string with_digest(std::string body);

// Foreign: not a node's file at all. Newer: written by a later scankit.
enum class TextState { Whole, Foreign, Truncated, Damaged, Newer };
struct ReadNode {
  TextState state = TextState::Foreign;
  Message why;  // where it is not Whole, one sentence
  NodeResult node;
};
ReadNode read_node_text(std::string_view text);

// "node1.json"; what a file system may not like is written as %XX, so that no name leaves the folder and two
// names never meet in one file.
std::string node_file_name(std::string_view node);

// What a node tells the launcher on standard output, among whatever else is printed there.

struct Line {
  std::string event, node;  // "started", "part", "done"
  double clock = 0;         // of the node; of a part: which
  std::string step;         // Slurm's name of it, "7.0"
  std::string text;         // done: why it did not write its file; of a part: that part
};
std::string line_text(const Line& line);
std::optional<Line> line_of(std::string_view text);

// A node's file as lines, for a node that cannot write it. Short ones: slurmstepd passes on whole lines of up
// to 1024 bytes, and cuts longer ones among those of other nodes (SLURM_IO_MAX_MSG_LEN).
std::string as_parts(const std::string& node, std::string_view text);

// Puts such files together again.
class Assembler {
 public:
  // The text, once its node is done.
  std::optional<std::string> add(const Line& line);
  const std::map<std::string, std::string>& unfinished() const { return texts_; }

 private:
  std::map<std::string, std::string> texts_;  // by node
};

// How long a node may collect facts in addition to its command, and how long the launcher waits for both.
// `timeout` is that of the command, in seconds.
std::chrono::seconds facts_limit(int timeout);
std::chrono::seconds node_deadline(int timeout);

// Cuts a stream into lines. What follows the last line end stays inside until more comes.
class LineCutter {
 public:
  template <class Take>
  void add(std::string_view bytes, Take take) {
    for (;;) {
      const auto end = bytes.find('\n');
      rest_ += bytes.substr(0, end);
      if (end == std::string_view::npos) return;
      take(rest_);
      rest_.clear();
      bytes.remove_prefix(end + 1);
    }
  }

 private:
  std::string rest_;
};

}  // namespace scankit::fleet
