// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/model/snapshot.h"

// What a report says of each examined file: which torch it was built for, and whether it loads.
namespace scankit::report {

// "built_for" of `doctor --json`: one entry for each file that could be read, and one for each wheel,
// directory or distribution.
nlohmann::ordered_json built_for_json(const Snapshot& snapshot);

// Each examined file, wheel, directory or distribution, with a sentence about the torch that it
// was built for.
std::vector<std::pair<std::string, std::string>> built_for_rows(const Snapshot& snapshot);

// "mamba-ssm, 3 files together: built for torch 2.4; 2.11 is installed".
std::string together_sentence(const BuiltFor& built_for, const std::string& installed);

// What the audit of every extension (`doctor --all`) found, in the words and order that all sinks share.
// Without --all the audit covers only extensions that link torch or CUDA, and its table shows only those
// that may not load.

struct AuditLine {
  AuditVerdict verdict{};
  std::string word;           // "loads", "would fail", "unknown", "other Python"
  std::string package, file;  // file: below the folder of its packages
  std::string path;           // the whole of it
  std::string why;            // "" where it loads
  std::string cause;          // a slug of the catalogue, or ""
  std::string built_for;      // which torch, as a clause; "" where it uses none
};
struct AuditTable {
  std::string title;                    // one sentence with the counts
  std::array<std::size_t, 4> counts{};  // by AuditVerdict
  std::vector<AuditLine> lines;         // would fail, unknown, loads, other Python; by path within each
  std::vector<std::pair<std::string, std::size_t>> loading;  // package, how many of its extensions load
  std::vector<Message> not_read;
  bool any_built_for = false;
  std::size_t of(AuditVerdict verdict) const { return counts[static_cast<std::size_t>(verdict)]; }
};
// Nothing if no audit was made or nothing is to be shown. audit_note() says why an audit could not be
// made; "" if it was made or not asked for.
std::optional<AuditTable> audit_table(const Snapshot& snapshot);
std::string audit_note(const Snapshot& snapshot);
// Counts the extensions of a package: "3 extensions".
std::string loading_words(std::size_t n);  // "3 extensions"

// The table as lines without line ends: files that would fail, files that nobody can tell, and for each
// package the number of files that load. With `verbose`, every file. Empty if no audit was asked for.
std::vector<std::string> audit_lines(const Snapshot& snapshot, bool verbose);

// The "audit" array of doctor_json(): one entry for each file, in the order of the snapshot.
nlohmann::ordered_json audit_json(const Snapshot& snapshot);

}  // namespace scankit::report
