// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ci/fleet/merge.h"
#include "ci/fleet/node_result.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/sinks.h"

namespace scankit::fleet {

// What a command printed with --json, in brief: for doctor, env check and validate itself, for
// ci its steps.
Summary summarised(std::string_view json);

// Facts that the nodes of one fleet should share, by name. Where they differ may be what is wrong with a
// node. A fact that could not be read has a value that says so.
std::map<std::string, std::string> facts_of(const Snapshot& snapshot);

inline constexpr const char* kReportSchema = "urn:scankit:fleet-report:1";  // schema/fleet-report-1.json

// For people: what is wrong first; a thousand healthy nodes are one line.
std::string text_report(const FleetReport& report, const TextStyle& style);
std::string json_report(const FleetReport& report, int exit_status);  // English, for programs
Document fleet_document(const FleetReport& report, int exit_status);
// `report` must outlive the views.
Views fleet_views(const FleetReport& report, int exit_status);

// "2 nodes failed, 3 nodes are unknown, 995 of 1000 passed; 1 warning".
std::string verdict_line(const FleetReport& report);
std::string_view verdict_word(const FleetReport& report);  // "healthy", "broken", "unknown"
// "node1, node2, node3 and 41 more".
std::string node_names(const std::vector<std::string>& nodes, std::size_t most = 8);
std::string difference_line(const Difference& difference);
std::string outlier_line(const Outlier& outlier);
std::string command_line(const std::vector<std::string>& command);  // "scankit doctor --no-import"

}  // namespace scankit::fleet
