// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "doctor/base/files.h"
#include "kernels/selective_scan/tune/cells.h"

// The record is a text file with tabs: a first line about the machine, then lines that begin with their
// kind (time, wrong, best, won, done, skipped, crashed). It is only ever appended to, and a line without
// its end is ignored. The dispatch table is C++ source.
namespace scankit::selective_scan {
namespace {

// The first line. A record is only continued if it is the same: times of other device code mean nothing.
std::string head_of(const Machine& m) {
  return "scankit_tune 1\t" + m.gpu + "\t" + std::to_string(m.capability) + "\t" +
         std::to_string(m.multiprocessors) + "\t" + m.source;
}

std::string text_of(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  std::istringstream in{std::string(line)};
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

// Whether the variant is still made for this dtype.
bool takes(bool backward, int variant, DType dtype) {
  return variant_of(backward, variant).resident_warps[dtype == DType::F32] > 0;
}

// "won<TAB>forward<TAB>2<TAB>8<TAB>2048<TAB>2048<TAB>16<TAB>4x4<TAB>2<TAB>1<TAB>2<TAB>ms<TAB>predicted's ms"
bool row_of(const std::vector<std::string>& f, Row* row) {
  if (f.size() != 13) return false;
  std::vector<int> n;
  for (const std::size_t i : {2, 3, 4, 5, 6, 8, 9, 10}) n.push_back(std::atoi(f[i].c_str()));
  row->cell = {f[1] == "backward", static_cast<DType>(n[0]), n[1], n[2], n[3], n[4], 0};
  row->choice = {-1, n[5], n[6], n[7]};
  for (int v = 0; v < shipped_variants(row->cell.backward); ++v)
    if (variant_name(row->cell.backward, v) == f[7]) row->choice.variant = v;
  row->ms = std::atof(f[11].c_str()), row->predicted_ms = std::atof(f[12].c_str());
  return row->choice.variant >= 0 && n[0] >= 0 && n[0] <= 2 &&
         takes(row->cell.backward, row->choice.variant, row->cell.dtype);
}

// Parses what name_of() writes: "forward bf16 B8 D2048 L2048 N16", and "4x4/2 s1 p2" for a choice.
bool cell_of(const std::string& name, Cell* cell) {
  char pass[16] = "", dtype[8] = "";
  if (std::sscanf(name.c_str(), "%15s %7s B%d D%d L%d N%d", pass, dtype, &cell->batch, &cell->dim,
                  &cell->length, &cell->states) != 6)
    return false;
  cell->backward = std::string_view(pass) == "backward";
  for (const DType each : {DType::F32, DType::F16, DType::BF16})
    if (name_of(each) == dtype) cell->dtype = each;
  return name_of(*cell) == name;
}
bool choice_of(bool backward, const std::string& name, Choice* choice) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos || std::sscanf(name.c_str() + slash, "/%d s%d p%d", &choice->warps,
                                                &choice->segments, &choice->pieces) != 3)
    return false;
  for (choice->variant = 0; choice->variant < shipped_variants(backward); ++choice->variant)
    if (variant_name(backward, choice->variant) == name.substr(0, slash)) return true;
  return false;
}

// The problem that a row of the table is about: its first six arguments, without spaces. Two rows with one
// key are different measurements of the same problem.
std::string key_of(const std::string& line) {
  std::string key;
  int commas = 0;
  for (const char c : line) {
    if (c == ',' && ++commas == 6) break;
    if (c != ' ') key += c;
  }
  return key;
}

}  // namespace

Result<Record> Record::open(const std::string& path, const Machine& machine) {
  Record record;
  record.path_ = path;
  const std::string head = head_of(machine);
  const auto text = read_whole_file(path);
  if (!text) {
    SCANKIT_CHECK(write_file_atomically(path, head + "\n"));
    return record;
  }
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);
  if (line != head)
    return Error{Errc::InvalidArgument, path + " is of another GPU or of other device code",
                 "name another file, or remove it"};
  while (std::getline(lines, line))
    if (!lines.eof()) record.take(line);  // a line without its end was cut off
  return record;
}

Result<Record> Record::read(const std::string& path, Machine* machine) {
  SCANKIT_TRY(const std::string text, read_whole_file(path));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = fields_of(line);
  if (head.size() != 5 || head[0] != "scankit_tune 1")
    return Error{Errc::InvalidArgument, path + " is not what scankit_tune writes", ""};
  *machine = {head[1], std::atoi(head[2].c_str()), std::atoi(head[3].c_str()), head[4]};
  Record record;
  while (std::getline(lines, line))
    if (!lines.eof()) record.take(line);
  // A winner of the contest stays, unless a variant that is shipped now is faster by more than noise.
  std::map<std::string, Row> won;
  for (const Row& row : record.rows_) won[name_of(row.cell)] = row;
  record.rows_.clear();
  for (const auto& [name, timed] : record.timed_) {
    if (record.done_.count(name) == 0) continue;
    const auto before = won.find(name);
    const bool stays = before != won.end() && timed.row.ms >= kNoise * before->second.ms;
    record.rows_.push_back(stays ? before->second : timed.row);
  }
  return record;
}

// "time<TAB>cell<TAB>choice<TAB>ms<TAB>rounds"
void Record::take_time(const std::vector<std::string>& fields) {
  Row row;
  if (fields.size() != 5 || !cell_of(fields[1], &row.cell) ||
      !choice_of(row.cell.backward, fields[2], &row.choice) ||
      !takes(row.cell.backward, row.choice.variant, row.cell.dtype))
    return;
  row.ms = std::atof(fields[3].c_str());
  const int rounds = std::atoi(fields[4].c_str());
  Timed& best = timed_[fields[1]];
  if (rounds > best.rounds || (rounds == best.rounds && row.ms < best.row.ms)) best = {row, rounds};
}

void Record::take(std::string_view line) {
  const std::vector<std::string> fields = fields_of(line);
  if (fields.size() < 2) return;
  Row row;
  if (fields[0] == "won" && row_of(fields, &row)) rows_.push_back(row);
  if (fields[0] == "time") take_time(fields);
  if (fields[0] == "done") done_.insert(fields[1]);
  if (fields[0] == "crashed" && fields.size() == 3) crashed_.insert(fields[1] + "\t" + fields[2]);
}

// One write() for each cell, so that a killed run leaves whole cells.
Result<void> Record::append(const std::string& text) const {
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  if (!written) return Error{Errc::Io, "cannot write to " + path_, ""};
  return {};
}

Result<void> Record::add(const Cell& cell, const Outcome& outcome) {
  std::string text;
  const std::string name = name_of(cell);
  for (const Entry& e : outcome.entries) {
    const std::string choice = name_of(cell.backward, e.choice);
    if (!e.wrong.empty())
      text += "wrong\t" + name + "\t" + choice + "\t" + e.wrong + "\n";
    else
      text += "time\t" + name + "\t" + choice + "\t" + text_of("%.5f", e.median) + "\t" +
              std::to_string(e.times.size()) + "\n";
  }
  const auto entry = [&](int i) -> const Entry& { return outcome.entries[static_cast<std::size_t>(i)]; };
  if (outcome.best >= 0)
    text += "best\t" + name + "\t" + name_of(cell.backward, entry(outcome.best).choice) + "\t" +
            text_of("%.5f", entry(outcome.best).median) + "\n";
  Row row;
  if (outcome.shipped >= 0) {
    const Choice& c = entry(outcome.shipped).choice;
    row = {cell, c, entry(outcome.shipped).median, entry(outcome.predicted).median};
    text += std::string("won\t") + (cell.backward ? "backward" : "forward");
    for (const int n : {static_cast<int>(cell.dtype), cell.batch, cell.dim, cell.length, cell.states})
      text += "\t" + std::to_string(n);
    text += "\t" + std::string(variant_name(cell.backward, c.variant));
    for (const int n : {c.warps, c.segments, c.pieces}) text += "\t" + std::to_string(n);
    text += "\t" + text_of("%.5f", row.ms) + "\t" + text_of("%.5f", row.predicted_ms) + "\n";
  }
  SCANKIT_CHECK(append(text + "done\t" + name + "\n"));
  if (outcome.shipped >= 0) rows_.push_back(row);
  done_.insert(name);
  return {};
}

Result<void> Record::skip(const Cell& cell, const std::string& why) {
  SCANKIT_CHECK(append("skipped\t" + name_of(cell) + "\t" + why + "\n"));
  return {};
}

Result<void> Record::add_crash(const Cell& cell, const Choice& choice) {
  const std::string what = name_of(cell) + "\t" + name_of(cell.backward, choice);
  crashed_.insert(what);
  return append("crashed\t" + what + "\n");
}
bool Record::crashed(const Cell& cell, const Choice& choice) const {
  return crashed_.count(name_of(cell) + "\t" + name_of(cell.backward, choice)) > 0;
}

// Rows are sorted, so that a repeated run changes as few lines as possible. Comments at the top stay.
std::string table_text(const std::string& before, const Machine& machine, const std::vector<Row>& rows) {
  std::vector<std::string> mine;
  std::set<std::string> keys;
  for (const Row& row : rows) {
    const char* const types[] = {"F32", "F16", "BF16"};
    char line[200];
    const Index channels = Index{row.cell.batch} * row.cell.dim;
    std::snprintf(line, sizeof line, "MEASURED_%s(%d, %d, %s, %d, %d, %lld, %s, %d, %d, %d)",
                  row.cell.backward ? "BACKWARD" : "FORWARD", machine.capability, machine.multiprocessors,
                  types[static_cast<int>(row.cell.dtype)], row.cell.states, row.cell.length, channels,
                  std::string(variant_name(row.cell.backward, row.choice.variant)).c_str(), row.choice.warps,
                  row.choice.segments, row.choice.pieces);
    if (keys.insert(key_of(line)).second) mine.push_back(line);
  }
  std::string head;
  std::vector<std::string> all = mine;
  std::istringstream lines(before);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("// No rows yet", 0) == 0) continue;
    if (line.rfind("MEASURED_", 0) != 0)
      head += line + "\n";
    else if (keys.count(key_of(line)) == 0)
      all.push_back(line);
  }
  std::sort(all.begin(), all.end());
  for (const std::string& line : all) head += line + "\n";
  return head;
}

}  // namespace scankit::selective_scan
