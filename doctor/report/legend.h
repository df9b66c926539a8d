// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

// Long directories that a report repeats, written once: "$SITE =
// /home/user/.venv/lib/python3.11/site-packages". Never for a command that is to be pasted: no shell knows
// these names.
class Legend {
 public:
  // A directory that may be worth a name. Several of one name are numbered: $SITE, $SITE2.
  void offer(const std::string& name, const std::string& directory);
  // Names the directories that these texts repeat and that are long.
  void settle(const std::vector<std::string>& texts);
  // The text with the names in place of the directories; unchanged before settle().
  std::string shortened(std::string text) const;
  const std::vector<std::pair<std::string, std::string>>& entries() const { return used_; }  // "$SITE", path

 private:
  std::vector<std::pair<std::string, std::string>> offered_, used_;  // the longest path first
};

// The environment's directories of packages ($SITE) and its root ($ENV).
Legend legend_of(const Snapshot& snapshot);

// A whole text, with the legend below it where there is one;
// lines for which `is_command` holds stay as they are.
std::string with_legend(Legend legend, const std::string& text, bool (*is_command)(const std::string& line));

}  // namespace scankit
