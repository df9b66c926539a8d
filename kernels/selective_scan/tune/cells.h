// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "kernels/selective_scan/cuda/choice.h"

// What the tuner measures: problems ("cells"), the most important first, and the choices that can run each.
namespace scankit::selective_scan {

struct Cell {
  bool backward;
  DType dtype;
  int batch, dim, length, states;
  int tier;  // 0: the six shapes of the goals, 1: the figures beside them, then the grids
};

// Of one shape forward and backward are neighbours: they share their memory.
std::vector<Cell> default_cells();
Common common_of(const Cell& cell);
std::string shape_of(const Cell& cell);  // "bf16 B8 D2048 L2048 N16"
std::string name_of(const Cell& cell);   // "forward bf16 B8 D2048 L2048 N16"
std::string_view name_of(DType dtype);

std::string_view variant_name(bool backward, int variant);  // as variants.def has it
int shipped_variants(bool backward);
const Variant& variant_of(bool backward, int variant);
std::string name_of(bool backward, const Choice& choice);  // "4x4/2 s3 p2"

// Every variant that is made for the cell's states, shipped or candidate, in every block of two warps and
// more that fits (one for more than 16 states, too), cut into as many segments as the length has and the GPU
// may want. Each cut once, though several counts give it.
std::vector<Choice> choices_of(const Cell& cell, const device::DeviceFacts& facts);
// What is chosen without a table.
Choice predicted_choice(const Cell& cell, const device::DeviceFacts& facts);

// Which choice is the fastest right one for a cell.

// Of two medians the lower is no better where it is above so much of the other.
inline constexpr double kNoise = 0.99;

// Where choices are tried: a GPU, or a test's made-up one.
class Bench {
 public:
  Bench() = default;
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  virtual ~Bench() = default;
  // Makes the cell's tensors. Not empty: why it cannot be measured here.
  virtual std::string open(const Cell& cell) = 0;
  // Empty where the choice computes what the fp64 oracle does, else what is wrong.
  virtual std::string judge(const Choice& choice) = 0;
  virtual double milliseconds(const Choice& choice) = 0;  // of one call
};

struct Entry {
  Choice choice;
  std::string wrong;          // not empty: out of the contest, and never timed
  std::vector<double> times;  // milliseconds
  double median = 0;          // 0: not timed
};
struct Outcome {
  std::vector<Entry> entries;
  int best = -1;      // index of the fastest, candidates of the tuner included; -1: none is right
  int shipped = -1;   // of the fastest that the modules have
  int predicted = 0;  // of what is chosen without a table
};

double median_of(std::vector<double> values);

// The cell must be open. Every choice is judged before anything is timed; then rounds, in each of which the
// choices take turns, backwards in every other round; who is far behind drops out, the predicted one never.
// A shipped choice within 1 % of the predicted one does not replace it: that is noise.
Outcome hold_contest(Bench& bench, const Cell& cell, const std::vector<Choice>& choices,
                     const Choice& predicted);

// What the tuner wrote down: a text file that grows cell by cell, so that a run that was cut off goes on, and
// the table that is compiled in.

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
