// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

// Long directories that a report repeats, written once below it: "$SITE =
// /home/user/.venv/lib/python3.11/site-packages". Never used in a command that is to be pasted, because
// no shell knows these names.
class Legend {
 public:
  // Offers a directory for shortening. Several directories with the same name are numbered:
  // $SITE, $SITE2.
  void offer(const std::string& name, const std::string& directory);
  // Chooses the directories that are long and that these texts repeat.
  void settle(const std::vector<std::string>& texts);
  // The text with names in place of directories. Unchanged before settle().
  std::string shortened(std::string text) const;
  const std::vector<std::pair<std::string, std::string>>& entries() const { return used_; }  // "$SITE", path

 private:
  std::vector<std::pair<std::string, std::string>> offered_, used_;  // the longest path first
};

// The environment's directories of packages ($SITE) and its root ($ENV).
Legend legend_of(const Snapshot& snapshot);

// Shortens a whole text and puts the legend, if there is one, below it. Lines for which `is_command` is
// true are not changed.
std::string with_legend(Legend legend, const std::string& text, bool (*is_command)(const std::string& line));

}  // namespace scankit
