// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <re2/re2.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/knowledge/faults.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/rule_filter.h"

namespace scankit::logs {

// Makes a line fit for matching and for a terminal: removes escape sequences and control bytes, turns a
// tab into a space and a byte that is not UTF-8 into '?', and drops white space at the end.
std::string clean_line(std::string_view raw);
// The same into `text`, whose memory is used again.
void clean_line(std::string_view raw, std::string& text);

// Whether the line is a whole traceback, as forums, JSON and loggers leave it when they drop or escape line ends.
bool is_collapsed_traceback(std::string_view text);
// Its frames and its exception, each as a line.
std::vector<std::string> traceback_lines(const std::string& text);

// Cuts a stream of any size into lines, with memory for one of them. A carriage return starts a new piece
// of the same line, as progress bars print it. NUL bytes are dropped, which makes the ASCII part of
// UTF-16 logs readable (PowerShell's `>` writes them). A line longer than kLongest is handed out in
// pieces that overlap.
class LineCutter {
 public:
  using Sink = std::function<void(std::uint64_t line, const std::string& text)>;
  static constexpr std::size_t kLongest = 4096, kOverlap = 512;

  explicit LineCutter(Sink sink) : sink_(std::move(sink)) { buffer_.reserve(kLongest); }
  void feed(std::string_view bytes);
  // Hands out a last line without a line end.
  void finish();
  // The number of lines so far; a last line without a line end counts.
  std::uint64_t lines() const { return line_ - (pending_ ? 0 : 1); }

 private:
  void emit();
  void add(std::string_view bytes);  // that are of one piece
  Sink sink_;
  std::string buffer_, clean_;
  std::uint64_t line_ = 1;
  std::size_t fresh_ = 0;  // bytes of the buffer that no piece has held yet
  bool pending_ = false;   // the line that is being read has had a byte
};

// What a line matches. Rule numbers are indices into log_rules().
struct LineMatch {
  std::vector<int> rules;  // in the order of the table
  bool error = false;      // it looks like an error, whether a rule knows it or not
};

class Matcher {
 public:
  Matcher();
  // The line with plain quotation marks, and without the prefixes of programs that pass a log on.
  void as_rules_read(const std::string& text, std::string& plain) const;
  LineMatch match(const std::string& line, RuleFilter::Memo& memo) const;
  const re2::RE2& pattern(int rule) const { return patterns_.pattern(rule); }
  Captures captures(int rule, const std::string& line) const;
  // Whether `line` meets the rule's `after`; true for a rule without one.
  bool after_matches(int rule, const std::string& line) const;
  bool looks_like_error(const std::string& line) const;
  bool looks_like_build(const std::string& line) const { return re2::RE2::PartialMatch(line, *build_); }

  // The file of a frame of a traceback, "" if the line is none.
  std::string frame(const std::string& line) const;
  // "3.11" of a line with a path of that Python's library, "" otherwise.
  std::string python_of(const std::string& line) const;
  // "train" of a command "python train.py", "" if the line shows none.
  std::string script_of(const std::string& line) const;

 private:
  RuleFilter patterns_;  // of all rules, and behind them that of an error
  std::vector<std::unique_ptr<re2::RE2>> after_;
  std::unique_ptr<re2::RE2> build_, frame_, prefix_, python_, script_;
};
const Matcher& matcher();

}  // namespace scankit::logs
