// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/report/legend.h"
#include "doctor/report/text.h"

namespace scankit {

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

}  // namespace scankit
