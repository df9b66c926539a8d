// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/result.h"

// fleet.json: which nodes have to answer, and what the launcher saw of each. It is written before the first
// node is asked, so that no node can be missing silently, and once more when the launch has ended.

namespace scankit::fleet {

// "login,node[1-3,07-09]-ib[0-1]" as names, sorted and without duplicates: the list of hosts that Slurm,
// pdsh and clush write, read without any of them. A range keeps the digits of its first number.
Result<std::vector<std::string>> expanded_hosts(std::string_view list);

inline constexpr const char* kRosterFile = "fleet.json";
inline constexpr const char* kRosterSchema = "urn:scankit:fleet-roster:1";  // schema/fleet-roster-1.json

// What the launcher saw of one node. Times are seconds since 1970 by the launcher's clock, unless the
// comment says otherwise.
struct AskedNode {
  double asked = 0;                  // when it was launched, by the launcher's clock as all of these
  double started = 0, reported = 0;  // when its lines came; 0: none did
  double node_clock = 0;             // what its clock showed when it sent the first
  bool gave_up = false;              // the launcher's own deadline passed first
  bool over = false;                 // its launch has ended, whatever came of it
  std::string problem;               // "it could not write its file: ...": said by itself, or by the engine
};

// The content of fleet.json.
struct Roster {
  std::string fleet, tool_version, engine, job, launch;
  std::vector<std::string> command;
  std::string command_sha256;
  std::map<std::string, std::string> inputs;
  double timeout = 0;
  std::map<std::string, AskedNode> nodes;     // the expected ones
  std::map<std::string, std::string> absent;  // expected, but not to be had: why
  std::vector<std::string> said;              // what the engine wrote last
};

std::string roster_text(const Roster& roster);
Result<Roster> roster_of(const std::string& text);
Result<Roster> read_roster(const std::string& folder);  // Errc::NotFound where there is none
Result<void> write_roster(const std::string& folder, const Roster& roster);

// The lock of the process that launches into the directory. The kernel releases it when that process ends.
Result<Descriptor> lock_folder(const std::string& folder);

}  // namespace scankit::fleet
