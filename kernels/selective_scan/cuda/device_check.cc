// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/cuda/choice.h"

//   scankit_device_check --source selective_scan.cu --units units.def [--cubins DIR] [--cases N]
//                        [--stateful N] [--steps N] [--seed S] [--small] [--time]
// Runs the CUDA kernels, through the loader and the planner, on random cases of the contract, with states
// beside the scan, and of single steps, against double precision. A case is its seed: --seed S --cases 1
// runs a wrong one again. Exit status: 0 all right, 1 something wrong, 2 unknown arguments, 77 no GPU or no
// compiler here.
namespace scankit::selective_scan {
namespace {

CaseShape random_case(unsigned seed, bool small) {
  std::mt19937 random(seed * 7919u + 17u);
  const auto pick = [&](std::initializer_list<int> of) {
    return of.begin()[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random)];
  };
  const auto coin = [&] { return pick({0, 1}) == 1; };
  CaseShape s = {};
  s.seed = seed;
  s.dtype = static_cast<DType>(seed % 3);
  s.batch = pick({1, 1, 2, 3});
  s.groups = pick({1, 1, 1, 2, 4});
  s.dim = s.groups * (small ? pick({1, 5, 17}) : pick({1, 3, 8, 16, 20, 33, 70, 130}));
  s.length = small ? pick({1, 7, 33, 70})
                   : pick({1, 2, 3, 7, 31, 32, 33, 49, 64, 96, 127, 128, 129, 196, 257, 512, 1000});
  s.states =
      small ? pick({1, 4, 8, 16, 40}) : pick({1, 2, 3, 4, 5, 8, 9, 15, 16, 16, 16, 16, 17, 32, 64, 100, 256});
  while (Index{s.batch} * s.dim * s.length * s.states > 3000000) s.length = s.length / 2 + 1;
  s.softplus = coin(), s.z = coin(), s.D = coin(), s.bias = coin();
  s.pad = pick({0, 0, 0, 1, 5, 8});
  s.shift = pick({0, 0, 0, 1, 3, 4, 8});
  s.channel_major = coin(), s.A_transposed = coin();
  s.wide_x = coin(), s.without_x = pick({0, 0, 1}) == 1, s.out_z = coin();
  s.segments = pick({0, 0, 2, 3, 7});
  s.rounded = coin();
  s.kind = pick({0, 0, 0, 0, 0, 0, 1, 2, 3});
  if ((s.kind & 2) != 0) s.groups = 1;  // as the binding takes a constant B
  return s;
}

// With states in addition to the scan or packed sequences, of every kind.
CaseShape random_stateful_case(unsigned seed, bool small) {
  CaseShape s = random_case(seed, small);
  std::mt19937 random(seed * 104729u + 5u);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  s.kind = pick(0, 7);
  if ((s.kind & 2) != 0) s.groups = 1;  // as the binding takes a constant B
  s.initial = pick(0, 2) != 0, s.last = pick(0, 2) != 0;
  if (pick(0, 8) == 0) s.length = 0;
  if (pick(0, 1) == 0) {
    if (!s.initial && !s.last) s.last = true;
    return s;
  }
  s.batch = 1;
  const int sequences = pick(1, 6);
  for (int i = 0; i < sequences; ++i) s.cu_seqlens.push_back(pick(0, s.length));  // empty ones, too
  s.cu_seqlens.push_back(s.length);
  s.garbage = pick(0, 7) == 0;
  if (s.garbage) {
    for (int& at : s.cu_seqlens)
      if (pick(0, 1) == 0) at = pick(0, 1) == 0 ? pick(-100, s.length + 100) : static_cast<int>(random());
  } else {
    s.cu_seqlens[0] = 0;
    std::sort(s.cu_seqlens.begin(), s.cu_seqlens.end());
  }
  return s;
}

float median(Gpu& gpu, device::Plan& plan) {
  void* workspace = gpu.allocate(plan.workspace_bytes);
  std::vector<float> times = gpu.time(plan, workspace, 4, 15);
  gpu.release(workspace);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

std::string name_of(const Variant& v, int warps) {
  char text[64];
  std::snprintf(text, sizeof text, "%dx%dx%d%s/%d", v.lanes, v.per_lane, v.channels, v.sliced ? "s" : "",
                warps);
  return text;
}

constexpr int kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24};

// One line for each variant and block: the time for every count of segments.
template <class Plan>
void time_segments(Gpu& gpu, const Variant& variant, int v, int warps, const Choice& chosen,
                   const Plan& plan_as) {
  std::printf("    %-9s", name_of(variant, warps).c_str());
  for (const int segments : kCounts) {
    device::Plan plan = {};
    const Choice choice = {v, warps, segments, chosen.pieces > 1 ? chosen.pieces : 2};
    if (!plan_as(choice, &plan)) continue;
    const bool picked = v == chosen.variant && warps == chosen.warps && segments == chosen.segments;
    std::printf(" %s%d:%.4f", picked ? "*" : "", segments, median(gpu, plan));
  }
  std::printf("\n");
}

// The chosen one with other counts of pieces a segment.
template <class Plan>
void time_pieces(Gpu& gpu, Choice choice, const Plan& plan_as) {
  if (choice.segments == 1) return;
  for (const int pieces : {1, 2, 3, 4}) {
    device::Plan plan = {};
    choice.pieces = pieces;
    if (plan_as(choice, &plan)) std::printf(" %d pieces %.4f", pieces, median(gpu, plan));
  }
  std::printf("\n");
}

void time_forward(Gpu& gpu, const Arrays& a, const device::DeviceFacts& facts) {
  device::Plan plan;
  device::Message message;
  Choice chosen;
  choose_forward(a.forward().common, facts, &chosen);
  plan_forward(a.forward(), facts, &plan, &message);
  std::printf("  fwd+x chosen %.4f", median(gpu, plan));
  if (chosen.segments > 1) plan.launch_count = 1, std::printf(" (ends %.4f)", median(gpu, plan));
  Forward without = a.forward();
  without.x.data = nullptr;
  plan_forward(without, facts, &plan, &message);
  std::printf(", no x %.4f\n", median(gpu, plan));
  const auto plan_as = [&](const Choice& choice, device::Plan* to) {
    return plan_forward_as(a.forward(), choice, to, &message);
  };
  time_pieces(gpu, chosen, plan_as);
  for (int v = 0; v < kForwardVariantCount; ++v) {
    const Variant& variant = kForwardVariants[v];
    if (variant.sliced || variant.lanes * variant.per_lane != 16) continue;
    for (const int warps : {2, 4})
      if (warps >= variant.fewest_warps) time_segments(gpu, variant, v, warps, chosen, plan_as);
  }
}

void time_backward(Gpu& gpu, const Arrays& a, const device::DeviceFacts& facts) {
  device::Plan plan;
  device::Message message;
  Choice chosen, states;
  choose_backward(a.backward().common, facts, &chosen);
  choose_forward(a.backward().common, facts, &states);
  plan_backward(a.backward(), facts, &plan, &message);
  std::printf("  bwd chosen %.4f", median(gpu, plan));
  if (chosen.segments > 1) plan.launch_count = 1, std::printf(" (ends %.4f)", median(gpu, plan));
  Backward without = a.backward();
  without.x.data = nullptr;
  plan_backward(without, facts, &plan, &message);
  std::printf(", no x %.4f, workspace %.0f MB\n", median(gpu, plan),
              static_cast<double>(plan.workspace_bytes) / 1e6);
  const auto plan_as = [&](const Choice& choice, device::Plan* to) {
    return plan_backward_as(a.backward(), choice, states, to, &message);
  };
  time_pieces(gpu, chosen, plan_as);
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& variant = kBackwardVariants[v];
    if (variant.sliced || variant.lanes * variant.per_lane != 16) continue;
    for (const int warps : {2, 4, 8})
      if (warps <= variant.most_warps &&
          shared_bytes(variant, warps, 16, DType::BF16) <= facts.shared_per_block)
        time_segments(gpu, variant, v, warps, chosen, plan_as);
  }
}

// Median times of every variant at the shapes of the figures, and of what the planner chooses.
void time_shapes(Gpu& gpu) {
  const struct {
    int batch, dim, length;
    DType dtype;
  } shapes[] = {{8, 2048, 2048, DType::BF16},  {8, 5120, 2048, DType::BF16}, {1, 5120, 2048, DType::BF16},
                {1, 2048, 16384, DType::BF16}, {64, 384, 196, DType::BF16},  {8, 2048, 2048, DType::F32},
                {8, 2048, 2048, DType::F16},   {2, 768, 4099, DType::BF16}};
  device::DeviceFacts facts;
  device::Message message;
  if (!device::device_prepare(0, &facts, &message)) return;
  for (const auto& shape : shapes) {
    for (const bool z : {true, false}) {
      const Arrays arrays(gpu, {shape.batch, shape.dim, shape.length, 16, shape.dtype, z});
      std::printf(
          "B%d D%d L%d N16 dtype %d%s (median ms, * chosen; lanes x states x channels / warps, "
          "segments:ms)\n",
          shape.batch, shape.dim, shape.length, static_cast<int>(shape.dtype), z ? " z" : "");
      time_forward(gpu, arrays, facts);
      time_backward(gpu, arrays, facts);
      std::fflush(stdout);
    }
  }
}

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
    std::printf("SKIPPED: %s\n", english(gpu.error().message).c_str());
    return 77;
  }
  if (auto loaded = load_units(options.source, options.units, options.cubins, gpu->capability()); !loaded) {
    const bool no_compiler = options.cubins.empty() && loaded.error().code == Errc::NotFound;
    std::printf("%s: %s\n", no_compiler ? "SKIPPED" : "device_check",
                english(loaded.error().message).c_str());
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
