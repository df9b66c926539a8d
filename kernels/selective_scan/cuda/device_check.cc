// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "kernels/selective_scan/cuda/check_case.h"
#include "kernels/selective_scan/cuda/check_device.h"

//   scankit_device_check --source selective_scan.cu --units units.def [--cubins DIR] [--cases N]
//                        [--stateful N] [--steps N] [--seed S] [--small] [--time]
// Runs the CUDA kernels, through the loader and the planner, on random cases of the contract, with states
// beside the scan, and of single steps, against double precision. A case is its seed: --seed S --cases 1
// runs a wrong one again. Exit status: 0 all right, 1 something wrong, 2 unknown arguments, 77 no GPU or no
// compiler here.
namespace scankit::selective_scan {
namespace {

struct Options {
  std::string source, units, cubins;
  int cases = 200, stateful = 200, steps = 100;
  unsigned seed = 1;
  bool small = false, time = false;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const bool has_value = i + 1 < count;
    if (name == "--small")
      options.small = true;
    else if (name == "--time")
      options.time = true;
    else if (name == "--source" && has_value)
      options.source = arguments[++i];
    else if (name == "--units" && has_value)
      options.units = arguments[++i];
    else if (name == "--cubins" && has_value)
      options.cubins = arguments[++i];
    else if (name == "--cases" && has_value)
      options.cases = std::atoi(arguments[++i]);
    else if (name == "--stateful" && has_value)
      options.stateful = std::atoi(arguments[++i]);
    else if (name == "--steps" && has_value)
      options.steps = std::atoi(arguments[++i]);
    else if (name == "--seed" && has_value)
      options.seed = static_cast<unsigned>(std::atoi(arguments[++i]));
    else {
      std::fprintf(stderr, "device_check: unknown argument or no value: %s\n", name.c_str());
      std::exit(2);
    }
  }
  return options;
}

int run(const Options& options) {
  auto gpu = Gpu::open();
  if (!gpu) {
    std::printf("SKIPPED: %s\n", gpu.error().message.c_str());
    return 77;
  }
  if (auto loaded = load_units(options.source, options.units, options.cubins, gpu->capability()); !loaded) {
    const bool no_compiler = options.cubins.empty() && loaded.error().code == Errc::NotFound;
    std::printf("%s: %s\n", no_compiler ? "SKIPPED" : "device_check", loaded.error().message.c_str());
    return no_compiler ? 77 : 1;
  }
  // Prints the first five cases and every wrong one; returns how many are wrong.
  const auto run_all = [&](const char* name, int count, const auto& run_one) {
    int failed = 0;
    for (int i = 0; i < count; ++i) {
      const CaseVerdict verdict = run_one(options.seed + static_cast<unsigned>(i));
      if (!verdict.right) ++failed;
      if (!verdict.right || i < 5) std::printf("%s\n", verdict.text.c_str());
    }
    if (count > 0)
      std::printf("%d %s, %d wrong; worst so far: %s\n", count, name, failed, worst_errors().c_str());
    return failed;
  };
  int failed = run_all("cases", options.cases,
                       [&](unsigned seed) { return run_case(*gpu, random_case(seed, options.small)); });
  failed += run_all("stateful cases", options.stateful,
                    [&](unsigned seed) { return run_case(*gpu, random_stateful_case(seed, options.small)); });
  failed += run_all("steps", options.steps, [&](unsigned seed) { return run_step(*gpu, seed); });
  if (options.time) time_shapes(*gpu);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace scankit::selective_scan

int main(int count, char** arguments) {
  return scankit::selective_scan::run(scankit::selective_scan::parse(count, arguments));
}
