// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "kernels/selective_scan/tune/cells.h"

// What the tuner wrote down: a text file that grows cell by cell, so that a run that was cut off goes on, and
// the table that is compiled in.
namespace scankit::selective_scan {

struct Machine {
  std::string gpu;
  int capability = 0, multiprocessors = 0;
  std::string source;  // sha256 of the device code
};

// A line of the table.
struct Row {
  Cell cell;
  Choice choice;
  double ms = 0, predicted_ms = 0;
};

class Record {
 public:
  // Reads what is there. Errc::InvalidArgument where it is of another GPU or other device code.
  static Result<Record> open(const std::string& path, const Machine& machine);

  // What was measured anywhere, with rows of what is shipped now: a candidate that has moved to variants.def
  // since is among it, for its kernel is the one that was measured.
  static Result<Record> read(const std::string& path, Machine* machine);

  bool has(const Cell& cell) const { return done_.count(name_of(cell)) > 0; }
  const std::vector<Row>& rows() const { return rows_; }
  // Appends a cell's outcome: every choice's median, what was wrong, and the winners.
  Result<void> add(const Cell& cell, const Outcome& outcome);
  Result<void> skip(const Cell& cell, const std::string& why);
  // A choice that ended the program: it is not tried again in the cells of this file.
  Result<void> add_crash(const Cell& cell, const Choice& choice);
  bool crashed(const Cell& cell, const Choice& choice) const;

 private:
  Result<void> append(const std::string& text) const;
  void take(std::string_view line);

  std::string path_;
  // Of the cell that is being read: the fastest of the shipped choices that were timed the most often.
  struct Timed {
    Row row;
    int rounds = 0;
  };
  void take_time(const std::vector<std::string>& fields);
  std::map<std::string, Timed> timed_;
  std::set<std::string> done_, crashed_;
  std::vector<Row> rows_;
};

// dispatch_table.def with the rows of this machine's kind of GPU in place of those it had for the same
// problems; all others stay. `before`: the present text.
std::string table_text(const std::string& before, const Machine& machine, const std::vector<Row>& rows);

}  // namespace scankit::selective_scan
