// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

// What `doctor --all` found, in the words that every sink prints.
namespace scankit {

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
  std::vector<std::string> not_read;
  bool any_built_for = false;
  std::size_t of(AuditVerdict verdict) const { return counts[static_cast<std::size_t>(verdict)]; }
};
// Nothing where no audit was made, or none could be: audit_note() then says why, or "".
std::optional<AuditTable> audit_table(const Snapshot& snapshot);
std::string audit_note(const Snapshot& snapshot);
std::string loading_words(std::size_t n);  // "3 extensions"

// The table as lines without line ends: files that would fail, those that nobody can tell, a count per
// package of those that load; every file with `verbose`. Empty where no audit was asked for.
std::vector<std::string> audit_lines(const Snapshot& snapshot, bool verbose);
std::string audit_markdown(const Snapshot& snapshot);
std::string audit_html(const Snapshot& snapshot);

// The "audit" array of doctor_json: one entry a file, in the order of the snapshot.
nlohmann::ordered_json audit_json(const Snapshot& snapshot);

}  // namespace scankit
