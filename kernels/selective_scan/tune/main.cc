// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "doctor/base/files.h"
#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/tune/cells.h"
#include "kernels/selective_scan/tune/gpu_bench.h"

// scankit_tune --source selective_scan.cu --units units.def [...]: README.md has the options. Exit status: 77
// where there is no GPU or no compiler, 1 where a choice was wrong, 2 usage.
namespace scankit::selective_scan {
namespace {

// The command line; README.md describes each option.
struct Options {
  std::string source, units, cubins, compile, results = "tune.txt", table, dtype;
  double budget = 1e9;
  int tiers = 9, capability = 90, limit = 1 << 30, states = 1;
  bool list = false, fresh = false, rewrite = false, forward = true, backward = true;
};

[[noreturn]] void usage(const std::string& name) {
  std::fprintf(stderr, "tune: unknown argument or no value: %s\n", name.c_str());
  std::exit(2);
}

Options parse(int count, char** arguments) {
  Options o;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--list" || name == "--fresh" || name == "--rewrite") {
      (name == "--list" ? o.list : name == "--fresh" ? o.fresh : o.rewrite) = true;
      continue;
    }
    if (i + 1 == count) usage(name);
    const std::string value = arguments[++i];
    if (name == "--source")
      o.source = value;
    else if (name == "--units")
      o.units = value;
    else if (name == "--cubins")
      o.cubins = value;
    else if (name == "--compile")
      o.compile = value;
    else if (name == "--capability")
      o.capability = std::atoi(value.c_str());
    else if (name == "--results")
      o.results = value;
    else if (name == "--table")
      o.table = value;
    else if (name == "--budget")
      o.budget = std::atof(value.c_str());
    else if (name == "--tiers")
      o.tiers = std::atoi(value.c_str());
    else if (name == "--states")
      o.states = std::atoi(value.c_str());
    else if (name == "--cells")
      o.limit = std::atoi(value.c_str());
    else if (name == "--dtype" && (value == "f32" || value == "f16" || value == "bf16"))
      o.dtype = value;
    else if (name == "--only" && (value == "forward" || value == "backward"))
      (value == "forward" ? o.backward : o.forward) = false;
    else
      usage(name);
  }
  return o;
}

// The cells that the options select, in order of importance.
std::vector<Cell> wanted_cells(const Options& options) {
  std::vector<Cell> cells;
  for (const Cell& cell : default_cells())
    if (cell.tier < options.tiers && (cell.backward ? options.backward : options.forward) &&
        (options.dtype.empty() || options.dtype == name_of(cell.dtype)) && cell.states >= options.states &&
        static_cast<int>(cells.size()) < options.limit)
      cells.push_back(cell);
  return cells;
}

// Needs no GPU: the facts are those of an H200.
int list_cells(const Options& options) {
  const device::DeviceFacts facts = {options.capability, 132, 232448, 233472};
  std::size_t total = 0;
  for (const Cell& cell : wanted_cells(options)) {
    const std::size_t choices = choices_of(cell, facts).size();
    total += choices;
    std::printf("tier %d  %-36s %3zu choices, predicted %s\n", cell.tier, name_of(cell).c_str(), choices,
                name_of(cell.backward, predicted_choice(cell, facts)).c_str());
  }
  std::printf("%zu cells, %zu choices, as on 132 multiprocessors\n", wanted_cells(options).size(), total);
  return 0;
}

int fail(const Error& error) {
  std::fprintf(stderr, "tune: %s%s%s\n", english(error.message).c_str(), error.hint.empty() ? "" : ": ",
               english(error.hint).c_str());
  return 1;
}

int wrong_of(const Cell& cell, const Outcome& outcome) {
  int wrong = 0;
  for (const Entry& e : outcome.entries) {
    if (e.wrong.empty()) continue;
    ++wrong;
    std::printf("  WRONG %s: %s\n", name_of(cell.backward, e.choice).c_str(), e.wrong.c_str());
  }
  return wrong;
}

void tell(const Cell& cell, const Outcome& outcome) {
  const auto entry = [&](int i) -> const Entry& { return outcome.entries[static_cast<std::size_t>(i)]; };
  if (outcome.best < 0) {
    std::printf("no choice is right\n");
    return;
  }
  const Entry &best = entry(outcome.best), &predicted = entry(outcome.predicted);
  std::printf("%s %.4f ms", name_of(cell.backward, best.choice).c_str(), best.median);
  if (outcome.shipped >= 0 && outcome.shipped != outcome.best)
    std::printf(" (a candidate; shipped %s %.4f)",
                name_of(cell.backward, entry(outcome.shipped).choice).c_str(), entry(outcome.shipped).median);
  if (predicted.median > 0)
    std::printf(", predicted %s %.4f, %.3f times", name_of(cell.backward, predicted.choice).c_str(),
                predicted.median, predicted.median / best.median);
  std::printf("; %zu tried\n", outcome.entries.size());
}

// The choice that is being tried. A kernel that faults makes the driver's context unusable, and the
// program ends with exit(); the handler then notes which choice it was, so that the next run skips it.
struct Attempt {
  Record* record;
  const Cell* cell;
  Choice choice;
} g_attempt;
void record_crash() {
  if (g_attempt.record) static_cast<void>(g_attempt.record->add_crash(*g_attempt.cell, g_attempt.choice));
}
class RecordedBench : public GpuBench {
 public:
  RecordedBench(Gpu& gpu, const device::DeviceFacts& facts, Record& record)
      : GpuBench(gpu, facts), record_(record) {
    static_cast<void>(std::atexit(record_crash));
  }
  std::string open(const Cell& cell) override {
    cell_ = cell;
    return GpuBench::open(cell);
  }
  std::string judge(const Choice& choice) override {
    if (record_.crashed(cell_, choice)) return "it ended an earlier run";
    g_attempt = {&record_, &cell_, choice};
    std::string wrong = GpuBench::judge(choice);
    g_attempt.record = nullptr;
    return wrong;
  }

 private:
  Record& record_;
  Cell cell_ = {};
};

// Measures every cell that the record does not have yet, until the budget is used up.
int measure(const Options& options, Gpu& gpu, const device::DeviceFacts& facts, Record& record,
            std::chrono::steady_clock::time_point begin) {
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  RecordedBench bench(gpu, facts, record);
  const std::vector<Cell> cells = wanted_cells(options);
  std::size_t number = 0, left = 0;
  int wrong = 0;
  for (const Cell& cell : cells) {
    ++number;
    if (record.has(cell)) continue;
    if (seconds() > options.budget) {
      ++left;
      continue;
    }
    std::printf("[%zu/%zu %4.0f s] %s: ", number, cells.size(), seconds(), name_of(cell).c_str());
    std::fflush(stdout);
    if (const std::string why = bench.open(cell); !why.empty()) {
      std::printf("skipped: %s\n", why.c_str());
      if (auto written = record.skip(cell, why); !written) return fail(written.error());
      continue;
    }
    const Outcome outcome = hold_contest(bench, cell, choices_of(cell, facts), predicted_choice(cell, facts));
    tell(cell, outcome);
    wrong += wrong_of(cell, outcome);
    std::fflush(stdout);
    if (auto written = record.add(cell, outcome); !written) return fail(written.error());
  }
  std::printf("%zu cells, %zu left for the next run, %d choices wrong, %.0f s\n", cells.size(), left, wrong,
              seconds());
  return wrong == 0 ? 0 : 1;
}

int write_table(const std::string& path, const Machine& machine, const std::vector<Row>& rows) {
  const auto before = read_whole_file(path);
  if (!before) return fail(before.error());
  if (auto written = write_file_atomically(path, table_text(*before, machine, rows)); !written)
    return fail(written.error());
  std::printf("%zu rows for %s in %s\n", rows.size(), machine.gpu.c_str(), path.c_str());
  return 0;
}

int rewrite(const Options& options) {
  Machine machine;
  const auto record = Record::read(options.results, &machine);
  return record ? write_table(options.table, machine, record->rows()) : fail(record.error());
}

// --compile: makes the cubins on a machine without a GPU.
int compile(const Options& options) {
  if (auto made = make_directories(options.compile); !made) return fail(made.error());
  const auto compiled =
      compile_units(options.source, options.units, options.compile, options.capability, "-DSCANKIT_TUNE");
  if (compiled) return 0;
  if (compiled.error().code != Errc::NotFound) return fail(compiled.error());
  std::printf("SKIPPED: %s\n", english(compiled.error().message).c_str());
  return 77;
}

int run(const Options& options) {
  if (options.list) return list_cells(options);
  if (!options.compile.empty()) return compile(options);
  if (options.rewrite) return rewrite(options);
  const auto begin = std::chrono::steady_clock::now();

  auto gpu = Gpu::open();
  if (!gpu) {
    std::printf("SKIPPED: %s\n", english(gpu.error().message).c_str());
    return 77;
  }
  if (auto loaded =
          load_units(options.source, options.units, options.cubins, gpu->capability(), "-DSCANKIT_TUNE");
      !loaded) {
    const bool no_compiler = options.cubins.empty() && loaded.error().code == Errc::NotFound;
    if (!no_compiler) return fail(loaded.error());
    std::printf("SKIPPED: %s\n", english(loaded.error().message).c_str());
    return 77;
  }
  device::DeviceFacts facts;
  device::Message message;
  if (!device::device_prepare(0, &facts, &message)) return fail({Errc::ToolFailed, message.text, ""});
  const auto source = sha256_file(options.source);
  if (!source) return fail(source.error());
  const Machine machine = {gpu->name(), facts.capability, facts.multiprocessors, *source};
  if (options.fresh) std::remove(options.results.c_str());
  auto record = Record::open(options.results, machine);
  if (!record) return fail(record.error());
  std::printf("%s, %d multiprocessors, results in %s\n", machine.gpu.c_str(), facts.multiprocessors,
              options.results.c_str());
  const int status = measure(options, *gpu, facts, *record, begin);
  if (options.table.empty()) return status;
  const int wrote = write_table(options.table, machine, record->rows());
  return wrote != 0 ? wrote : status;
}

}  // namespace
}  // namespace scankit::selective_scan

int main(int count, char** arguments) {
  return scankit::selective_scan::run(scankit::selective_scan::parse(count, arguments));
}
