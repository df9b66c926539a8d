// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "ci/fleet/commands.h"
#include "ci/fleet/report.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"

// Nodes of a small fleet, and a folder of what they wrote.
namespace scankit::fleet {

inline constexpr double kT = 1700000000;

inline NodeResult healthy(const std::string& name) {
  NodeResult node;
  node.fleet = "f1";
  node.node = name;
  node.tool_version = "0.1.0";
  node.command = {"doctor"};
  node.command_sha256 = "c1";
  node.launched = kT;
  node.started = kT + 0.5;
  node.ended = kT + 2;
  node.end = "exited";
  node.facts = {{"driver", "580.65"}, {"torch", "2.11.0"}, {"gpus", "8 x H200"}};
  node.summary.verdict = "healthy";
  return node;
}

inline NodeResult broken(const std::string& name) {
  NodeResult node = healthy(name);
  node.exit_status = kExitFindings;
  node.summary.verdict = "broken";
  node.summary.causes = {{"missing_cudart", "error", "m.so", "it \"needs\" ,\"result\": libcudart.so.12"}};
  return node;
}

// A folder with a roster of these nodes, and what is put there.
class Folder {
 public:
  explicit Folder(const std::vector<std::string>& nodes)
      : folder_(*TemporaryDirectory::create("fleet-test")) {
    roster.fleet = "f1";
    roster.command = {"doctor"};
    roster.command_sha256 = "c1";
    roster.engine = "slurm";
    roster.timeout = 60;
    for (const std::string& node : nodes) {
      AskedNode& asked = roster.nodes[node];
      asked.asked = kT;
      asked.started = kT + 0.6;
      asked.node_clock = kT + 0.5;
      asked.reported = kT + 2.1;
      asked.over = true;
    }
  }
  void put(const NodeResult& node) const { put(node_file_name(node.node), node_text(node, R"({"a":1})")); }
  void put(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file_atomically(path_join(folder_.path(), name), text));
  }
  FleetReport report(const std::vector<std::string>& expected = {}, bool with_roster = true) const {
    if (with_roster) {
      EXPECT_TRUE(write_roster(folder_.path(), roster));
    }
    auto read = report_of(folder_.path(), expected);
    EXPECT_TRUE(read);
    return *read;
  }
  std::string path() const { return folder_.path(); }
  Roster roster;

 private:
  TemporaryDirectory folder_;
};

}  // namespace scankit::fleet
