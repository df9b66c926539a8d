// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "kernels/selective_scan/cuda/check_case.h"
#include "kernels/selective_scan/cuda/check_tensor.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

// Contiguous arrays of a shape, with random contents that repeat every megabyte.
struct Arrays {
  Gpu& gpu;
  std::vector<void*> all;
  Forward forward = {};
  Backward backward = {};

  explicit Arrays(Gpu& g) : gpu(g) {}
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays() {
    for (void* memory : all) gpu.release(memory);
  }

  void* make(Index count, DType dtype, double mean, double scale) {
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype), block = std::size_t{1} << 20;
    auto* memory = static_cast<unsigned char*>(gpu.allocate(bytes));
    all.push_back(memory);
    std::mt19937 random(static_cast<unsigned>(all.size()));
    std::normal_distribution<double> d(mean, scale);
    std::vector<unsigned char> host(block);
    for (std::size_t at = 0; at < block; at += size_of(dtype)) {
      const std::uint32_t bits = encode(d(random), dtype);
      std::copy_n(reinterpret_cast<const unsigned char*>(&bits), size_of(dtype), host.data() + at);
    }
    for (std::size_t at = 0; at < bytes; at += block)
      gpu.to_device(memory + at, host.data(), std::min(block, bytes - at));
    return memory;
  }

  void shape(int batch, int dim, int length, DType dtype, bool z) {
    Common& c = forward.common;
    c.batch = batch, c.dim = dim, c.length = length, c.states = 16, c.groups = 1;
    c.dtype = dtype;
    c.softplus = true;
    const Index rows = Index{batch} * dim * length, b = Index{dim} * length, n = c.states;
    const auto sequence = [&](double mean, double scale) {
      return Sequence{make(rows, dtype, mean, scale), b, length};
    };
    const auto result = [&] { return SequenceOut{make(rows, dtype, 0, 1), b, length}; };
    c.u = sequence(0, 1), c.delta = sequence(-3, 1);
    if (z) c.z = sequence(0, 1);
    c.A = static_cast<float*>(make(Index{dim} * n, DType::F32, -4, 0.5)), c.A_dim_stride = n,
    c.A_state_stride = 1;
    c.B = {make(batch * n * length, dtype, 0, 1), n * length, n * length, length};
    c.C = {make(batch * n * length, dtype, 0, 1), n * length, n * length, length};
    c.D = static_cast<float*>(make(dim, DType::F32, 1, 0.1));
    c.delta_bias = static_cast<float*>(make(dim, DType::F32, 0, 0.1));
    forward.out = result();
    if (z) forward.out_z = result();
    const Index channel = (chunk_count(length) + 1) * n;
    forward.x = {static_cast<float*>(make(Index{batch} * dim * channel, DType::F32, 0, 1)), dim * channel,
                 channel, n};
    backward.common = c;
    backward.dout = sequence(0, 1);
    if (z) backward.out = {forward.out.data, b, length}, backward.dz = result();
    backward.x = forward.x;
    backward.du = result(), backward.ddelta = result();
    const auto sum = [&](Index count) { return static_cast<float*>(make(count, DType::F32, 0, 1)); };
    backward.dA = sum(dim * n), backward.dB = sum(batch * n * length), backward.dC = sum(batch * n * length);
    backward.dD = sum(dim), backward.ddelta_bias = sum(dim);
  }

  float median(device::Plan& plan) {
    void* workspace = gpu.allocate(plan.workspace_bytes);
    std::vector<float> times = gpu.time(plan, workspace, 4, 15);
    gpu.release(workspace);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }
};

std::string name_of(const Variant& v, int warps) {
  char text[64];
  std::snprintf(text, sizeof text, "%dx%dx%d%s/%d", v.lanes, v.per_lane, v.channels, v.sliced ? "s" : "",
                warps);
  return text;
}

constexpr int kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24};

// One line for each variant and block: the time for every count of segments.
template <class Plan>
void time_segments(Arrays& a, const Variant& variant, int v, int warps, const Choice& chosen,
                   const Plan& plan_as) {
  std::printf("    %-9s", name_of(variant, warps).c_str());
  for (const int segments : kCounts) {
    device::Plan plan = {};
    const Choice choice = {v, warps, segments, chosen.pieces > 1 ? chosen.pieces : 2};
    if (!plan_as(choice, &plan)) continue;
    const bool picked = v == chosen.variant && warps == chosen.warps && segments == chosen.segments;
    std::printf(" %s%d:%.4f", picked ? "*" : "", segments, a.median(plan));
  }
  std::printf("\n");
}

// The chosen one with other counts of pieces a segment.
template <class Plan>
void time_pieces(Arrays& a, Choice choice, const Plan& plan_as) {
  if (choice.segments == 1) return;
  for (const int pieces : {1, 2, 3, 4}) {
    device::Plan plan = {};
    choice.pieces = pieces;
    if (plan_as(choice, &plan)) std::printf(" %d pieces %.4f", pieces, a.median(plan));
  }
  std::printf("\n");
}

void time_forward(Arrays& a, const device::DeviceFacts& facts) {
  device::Plan plan;
  device::Message message;
  Choice chosen;
  choose_forward(a.forward.common, facts, &chosen);
  plan_forward(a.forward, facts, &plan, &message);
  std::printf("  fwd+x chosen %.4f", a.median(plan));
  if (chosen.segments > 1) plan.launch_count = 1, std::printf(" (ends %.4f)", a.median(plan));
  Forward without = a.forward;
  without.x.data = nullptr;
  plan_forward(without, facts, &plan, &message);
  std::printf(", no x %.4f\n", a.median(plan));
  const auto plan_as = [&](const Choice& choice, device::Plan* to) {
    return plan_forward_as(a.forward, choice, to, &message);
  };
  time_pieces(a, chosen, plan_as);
  for (int v = 0; v < kForwardVariantCount; ++v) {
    const Variant& variant = kForwardVariants[v];
    if (variant.sliced || variant.lanes * variant.per_lane != 16) continue;
    for (const int warps : {2, 4})
      if (warps >= variant.fewest_warps) time_segments(a, variant, v, warps, chosen, plan_as);
  }
}

void time_backward(Arrays& a, const device::DeviceFacts& facts) {
  device::Plan plan;
  device::Message message;
  Choice chosen, states;
  choose_backward(a.backward.common, facts, &chosen);
  choose_forward(a.backward.common, facts, &states);
  plan_backward(a.backward, facts, &plan, &message);
  std::printf("  bwd chosen %.4f", a.median(plan));
  if (chosen.segments > 1) plan.launch_count = 1, std::printf(" (ends %.4f)", a.median(plan));
  Backward without = a.backward;
  without.x.data = nullptr;
  plan_backward(without, facts, &plan, &message);
  std::printf(", no x %.4f, workspace %.0f MB\n", a.median(plan),
              static_cast<double>(plan.workspace_bytes) / 1e6);
  const auto plan_as = [&](const Choice& choice, device::Plan* to) {
    return plan_backward_as(a.backward, choice, states, to, &message);
  };
  time_pieces(a, chosen, plan_as);
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& variant = kBackwardVariants[v];
    if (variant.sliced || variant.lanes * variant.per_lane != 16) continue;
    for (const int warps : {2, 4, 8})
      if (warps <= variant.most_warps && shared_bytes(variant, warps, 16) <= facts.shared_per_block)
        time_segments(a, variant, v, warps, chosen, plan_as);
  }
}

}  // namespace

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
      Arrays arrays(gpu);
      arrays.shape(shape.batch, shape.dim, shape.length, shape.dtype, z);
      std::printf(
          "B%d D%d L%d N16 dtype %d%s (median ms, * chosen; lanes x states x channels / warps, "
          "segments:ms)\n",
          shape.batch, shape.dim, shape.length, static_cast<int>(shape.dtype), z ? " z" : "");
      time_forward(arrays, facts);
      time_backward(arrays, facts);
      std::fflush(stdout);
    }
  }
}

}  // namespace scankit::selective_scan
