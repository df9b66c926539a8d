// SPDX-License-Identifier: Apache-2.0
// Predicts the bank conflicts of every kernel that uses shared memory: the device code itself runs on the
// CPU, and what each warp's lanes touch at once is recorded. Prints the rows of kernel_use.cc's table. fp32
// alone: what lies in shared memory is fp32 whatever the dtype.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"
#include "kernels/selective_scan/cuda/shared_recorder.h"

// A barrier, and an exchange of lanes, is where a warp's lanes are at the same place.
// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names.
#define __syncthreads() (scankit::selective_scan::record_barrier(), __syncthreads())
#define __syncwarp() (scankit::selective_scan::record_barrier(), __syncwarp())
#define __shfl_xor_sync(...) (scankit::selective_scan::record_barrier(), __shfl_xor_sync(__VA_ARGS__))
#define __shfl_sync(...) (scankit::selective_scan::record_barrier(), __shfl_sync(__VA_ARGS__))
#define __shfl_up_sync(...) (scankit::selective_scan::record_barrier(), __shfl_up_sync(__VA_ARGS__))
#define __shfl_down_sync(...) (scankit::selective_scan::record_barrier(), __shfl_down_sync(__VA_ARGS__))
// NOLINTEND(bugprone-reserved-identifier)

#define SCANKIT_FORWARD
#define SCANKIT_BACKWARD
#define SCANKIT_GENERAL
#define SCANKIT_CONSTANT
#define SCANKIT_REDUCE
#define SCANKIT_DTYPE F32
namespace scankit::selective_scan {
alignas(128) static float memory[65536];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/entry.cuh"

namespace scankit::selective_scan {
namespace {

// Any large GPU would do: the facts decide the launches, and which kernels fit.
constexpr device::DeviceFacts kH200 = {90, 132, 232448, 233472};
constexpr int kLength = 4 * kTile;  // whole spans of every variant
std::map<std::string, Recorded> rows;
std::string only;  // this kernel alone; "": all

int running_thread() {
  const emulator::Block* block = emulator::Block::current();
  return block == nullptr ? -1 : static_cast<int>(block->thread());
}

// Every array of a problem is this one: only where the kernels go counts, not what they find.
alignas(256) float zeros[1 << 20];

template <class Arguments>
std::function<void()> body_of(void (*kernel)(Arguments), const device::Launch& launch) {
  Arguments arguments;
  std::memcpy(&arguments, launch.argument, sizeof arguments);
  return [kernel, arguments] { kernel(arguments); };
}

std::function<void()> body_of(const std::string& symbol, const device::Launch& launch) {
#define FORWARD_VARIANT(name, ...) \
  if (symbol == "scankit_forward_" #name) return body_of(scankit_forward_##name, launch);
#define BACKWARD_VARIANT(name, ...) \
  if (symbol == "scankit_backward_" #name) return body_of(scankit_backward_##name, launch);
#include "kernels/selective_scan/cuda/variants.def"
  if (symbol == "scankit_forward_ends") return body_of(scankit_forward_ends, launch);
  if (symbol == "scankit_backward_ends") return body_of(scankit_backward_ends, launch);
  if (symbol == "scankit_constant_forward") return body_of(scankit_constant_forward, launch);
  if (symbol == "scankit_constant_backward") return body_of(scankit_constant_backward, launch);
  if (symbol == "scankit_general_forward_real") return body_of(scankit_general_forward_real, launch);
  if (symbol == "scankit_general_forward_complex") return body_of(scankit_general_forward_complex, launch);
  if (symbol == "scankit_general_backward_real") return body_of(scankit_general_backward_real, launch);
  if (symbol == "scankit_general_backward_complex") return body_of(scankit_general_backward_complex, launch);
  return {};
}

// The first block of each launch, the first time that its kernel is met.
void record(device::Plan& plan) {
  std::vector<float4> workspace(plan.workspace_bytes / sizeof(float4) + 1, float4{0, 0, 0, 0});
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) {
    const device::Launch& launch = plan.launches[i];
    const std::string symbol = kCudaKernels[launch.kernel].symbol;
    const auto body = body_of(symbol, launch);
    if (!body || rows.contains(symbol) || (!only.empty() && only != symbol)) continue;
    blockIdx.x = blockIdx.y = 0;
    blockDim.x = launch.block_x;
    record_shared(memory, sizeof memory, running_thread);
    emulator::Block(launch.block_x, body, emulator::Block::kUp).run();
    rows[symbol] = recorded();
  }
}

// A problem of one batch entry with every option, whose tensors are all `zeros`.
Common problem(int dim, int states) {
  const Index row = kLength;
  Common c = {};
  c.batch = 1, c.dim = dim, c.length = kLength, c.states = states, c.groups = 1, c.softplus = true;
  c.u = c.delta = c.z = {zeros, dim * row, row};
  c.A = c.D = c.delta_bias = zeros, c.A_dim_stride = states, c.A_state_stride = 1;
  c.B = c.C = {zeros, states * row, states * row, row};
  return c;
}
SequenceOut result(const Common& c) { return {zeros, c.u.batch_stride, c.u.dim_stride}; }

Forward forward_of(const Common& c) {
  Forward f = {};
  f.common = c;
  f.out = f.out_z = result(c);
  return f;
}
Backward backward_of(const Common& c) {
  Backward b = {};
  b.common = c;
  b.dout = b.out = c.u;
  b.du = b.ddelta = b.dz = result(c);
  b.dA = b.dB = b.dC = b.dD = b.ddelta_bias = zeros;
  return b;
}

void check(bool planned, const device::Message& message) {
  if (planned) return;
  std::fprintf(stderr, "bank_conflicts: %s\n", message.text);
  std::exit(1);
}

// All warps that a block of it has at least are full, and so are the states of a slice (of two).
Common filling(const Variant& v) {
  return problem(v.warp_channels * v.fewest_warps, v.lanes * v.per_lane * (v.sliced ? 2 : 1));
}
void record_variants() {
  device::Plan plan = {};
  device::Message message;
  const Choice states{0, kForwardVariants[0].fewest_warps};
  for (int i = 0; i < kForwardVariantCount; ++i) {
    const Variant& v = kForwardVariants[i];
    for (const int segments : {1, v.sliced ? 1 : 2}) {  // with the kernel that finds the ends
      check(plan_forward_as(forward_of(filling(v)), {i, v.fewest_warps, segments}, &plan, &message), message);
      record(plan);
    }
  }
  for (int i = 0; i < kBackwardVariantCount; ++i) {
    const Variant& v = kBackwardVariants[i];
    for (const int segments : {1, v.sliced ? 1 : 2}) {
      Backward b = backward_of(filling(v));
      b.x = {zeros, 0, 0, 0};
      check(plan_backward_as(b, {i, v.fewest_warps, segments}, states, &plan, &message), message);
      record(plan);
    }
  }
}
// B is constant, C is not.
void record_constant() {
  device::Plan plan = {};
  device::Message message;
  Common c = problem(64, 16);
  c.B = {};
  c.constant_B = {zeros, c.A_dim_stride, c.A_state_stride};
  check(plan_forward(forward_of(c), kH200, &plan, &message), message);
  record(plan);
  Backward b = backward_of(c);
  b.x = {zeros, 0, 0, 0};
  check(plan_backward(b, kH200, &plan, &message), message);
  record(plan);
}
void record_general() {
  device::Plan plan = {};
  device::Message message;
  for (const bool complex : {false, true}) {
    Common c = problem(kGeneralWarps * kGeneralChannels, 2 * kGeneralSlice);
    c.complex = complex;
    if (complex) c.A_dim_stride *= 2, c.A_state_stride = 2;
    c.B = {};
    c.constant_B = {zeros, c.A_dim_stride, c.A_state_stride};
    if (complex) c.C.batch_stride *= 2, c.C.group_stride *= 2, c.C.state_stride *= 2;
    check(plan_forward(forward_of(c), kH200, &plan, &message), message);
    record(plan);
    check(plan_backward(backward_of(c), kH200, &plan, &message), message);
    record(plan);
  }
}

}  // namespace
}  // namespace scankit::selective_scan

// bank_conflicts [KERNEL]
int main(int count, char** arguments) {
  using namespace scankit::selective_scan;
  if (count > 1) only = arguments[1];
  record_variants();
  record_constant();
  record_general();
  for (const auto& [symbol, row] : rows)
    std::printf("{\"%s\", %ld, %ld, %ld},\n", symbol.c_str(), row.requests, row.wavefronts.least,
                row.wavefronts.needed);
  return 0;
}
