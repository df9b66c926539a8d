// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

namespace scankit::report {

// How the text looks; it does not change what is said, apart from `verbose` and `quiet`.
struct TextStyle {
  bool color = false;
  bool ascii = true;     // where the locale is not UTF-8
  bool verbose = false;  // every symbol, every piece of evidence, every passed check
  bool quiet = false;    // the verdict and the command alone
};

// Looks up a variable; unit tests pass their own.
using Environment = std::function<std::optional<std::string>(std::string_view)>;
bool locale_is_utf8(const Environment& variables);
// Whether letters outside ASCII are escaped: not where the user asked for another language by --lang, which containers
// without a locale need.
bool wants_ascii(const Environment& variables);
// Whether to use colour. `choice` is "auto", "always" or "never"; with "auto", NO_COLOR (no-color.org)
// and a dumb terminal switch it off.
bool wants_color(std::string_view choice, bool is_terminal, const Environment& variables);

// The report for people: what was looked at, the findings with the root first, what was not checked, the
// verdict, and as the last line the command that repairs it, if there is one.
// Same report, same bytes.
std::string doctor_text(const Report& report, const TextStyle& style);

// What `doctor -v` shows of a GPU: what deviceQuery and nvidia-smi -q tell, as far as its driver told it.

struct GpuRow {
  std::string label, value;  // in the reader's language: "L2 cache", "50 MiB"
};
// In the order of gpu_details.def; nothing where the driver was not asked or told nothing.
std::vector<GpuRow> gpu_rows(const Gpu& gpu);

// One sentence for each setting or state that slows programs down or stops them: "PCIe runs with 1 of 16
// lanes: copies between host and GPU are slow". Empty for a GPU as it should be.
std::vector<std::string> unusual_of(const Gpu& gpu);

// The layout of a report for a terminal: lines, marks, and the legend of shortened paths.

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

// A severity in a page. The symbol is never alone: the word says the same to readers without
// colour and Unicode.
struct Mark {
  const char *symbol, *ascii, *color;
};
extern const Mark kError, kWarning, kNote, kUnknown, kGood;
const Mark& mark_of(Severity severity);

// Builds the lines of a report for a terminal. All text passes through plain(), so callers
// pass it as it is.
class Page {
 public:
  explicit Page(const TextStyle& style) : style_(style) {}

  // A line of prose, in which the legend may shorten paths.
  Page& line(std::size_t indent, const std::string& text);
  // A line that the legend must not change: a command to paste, or columns.
  Page& verbatim(std::size_t indent, const std::string& text);
  Page& gap();
  // "x ERROR  cause: title"; `bold` is printed before `text`, in bold letters.
  Page& marked(std::size_t indent, const Mark& mark, const std::string& bold, const std::string& text);
  Page& strong(const std::string& command);
  // Shortens the paths of the lines so far, and adds the legend here.
  Page& legend(Legend legend);
  bool verbose() const { return style_.verbose; }
  std::string take();

 private:
  struct Line {
    std::string before, text;  // indentation and mark, with colours; plain text
    bool shortened = false;
    std::string bold = {};  // between the two
  };
  std::string in_bold(const std::string& text) const;
  TextStyle style_;
  std::vector<Line> lines_;
};

}  // namespace scankit::report
