// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>

#include "kernels/selective_scan/cuda/check_arrays.h"
#include "kernels/selective_scan/cuda/check_case.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

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

}  // namespace scankit::selective_scan
