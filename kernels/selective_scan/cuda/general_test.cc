// SPDX-License-Identifier: Apache-2.0
// The general kernels' device code, through the planner, on the CPU (emulator.h) against the fp64 oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>

#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

#define SCANKIT_GENERAL
#define SCANKIT_REDUCE
#define SCANKIT_DTYPE F32
namespace scankit::selective_scan {
alignas(16) static float memory[16384];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
#include "kernels/selective_scan/cuda/launch.h"
#include "validate/oracle.h"
#include "validate/random.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kSmall = {90, 1, 49152, 65536};  // few runs: several channel tiles a block
constexpr device::DeviceFacts kLarge = {90, 132, 49152, 65536};

template <class Arguments>
std::function<void()> body_of(void (*kernel)(Arguments), const device::Launch& launch) {
  Arguments arguments;
  EXPECT_EQ(launch.argument_bytes, sizeof arguments);
  std::memcpy(&arguments, launch.argument, sizeof arguments);
  return [kernel, arguments] { kernel(arguments); };
}

void run_launch(const device::Launch& launch) {
  const std::string symbol = kCudaKernels[launch.kernel].symbol;
  ASSERT_LE(launch.shared_bytes, sizeof memory);
  std::function<void()> body;
  if (symbol == "scankit_general_forward_real") body = body_of(scankit_general_forward_real, launch);
  if (symbol == "scankit_general_forward_complex") body = body_of(scankit_general_forward_complex, launch);
  if (symbol == "scankit_general_backward_real") body = body_of(scankit_general_backward_real, launch);
  if (symbol == "scankit_general_backward_complex") body = body_of(scankit_general_backward_complex, launch);
  if (symbol == "scankit_reduce") body = body_of(scankit_reduce, launch);
  ASSERT_TRUE(body) << symbol;
  for (blockIdx.x = 0; blockIdx.x < launch.grid_x; ++blockIdx.x) {
    std::memset(memory, 0xff, sizeof memory);  // NaN
    blockDim.x = launch.block_x;
    emulator::Block(launch.block_x, body).run();
  }
}
void run_plan(device::Plan& plan) {
  std::vector<float4> workspace(plan.workspace_bytes / sizeof(float4) + 1, {NAN, NAN, NAN, NAN});
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) run_launch(plan.launches[i]);
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Doubles numbers(std::size_t count, std::uint64_t seed, double low, double high) {
  Doubles values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = float(low + (high - low) * validate::unit(seed, i));
  return values;
}

struct Shape {
  int kind;  // 4: complex, 2: constant B, 1: constant C
  int batch, dim, length, states, groups;
  bool options;
};

validate::OracleInput make(const Shape& s) {
  validate::OracleInput in;
  in.batch = s.batch, in.dim = s.dim, in.length = s.length, in.states = s.states, in.groups = s.groups;
  in.complex = (s.kind & 4) != 0, in.constant_B = (s.kind & 2) != 0, in.constant_C = (s.kind & 1) != 0;
  in.softplus = s.options;
  const std::size_t parts = in.complex ? 2 : 1, sequence = std::size_t(s.batch) * s.dim * s.length;
  const std::size_t matrix = std::size_t(s.dim) * s.states * parts;
  const std::size_t variable = std::size_t(s.batch) * s.groups * s.states * s.length * parts;
  in.u = numbers(sequence, 1, -1, 1);
  in.delta = numbers(sequence, 2, 0, 0.5);
  in.A = numbers(matrix, 3, -2, -0.1);
  in.B = numbers(in.constant_B ? matrix : variable, 4, -1, 1);
  in.C = numbers(in.constant_C ? matrix : variable, 5, -1, 1);
  in.dout = numbers(sequence, 6, -1, 1);
  if (!s.options) return in;
  in.D = numbers(std::size_t(s.dim), 7, -1, 1);
  in.z = numbers(sequence, 8, -2, 2);
  in.delta_bias = numbers(std::size_t(s.dim), 9, -0.5, 0.5);
  return in;
}

// The case as the kernels take it, in memory that they fill.
class Trial {
 public:
  explicit Trial(const Shape& shape) : s_(shape), in_(make(shape)), want_(validate::run_oracle(in_)) {
    for (auto& [name, values] : std::map<std::string, const Doubles*>{{"u", &in_.u},
                                                                      {"delta", &in_.delta},
                                                                      {"A", &in_.A},
                                                                      {"B", &in_.B},
                                                                      {"C", &in_.C},
                                                                      {"D", &in_.D},
                                                                      {"z", &in_.z},
                                                                      {"bias", &in_.delta_bias},
                                                                      {"dout", &in_.dout}})
      memory_[name] = Floats(values->begin(), values->end());
  }

  void check(const device::DeviceFacts& facts, bool without_x) {
    forward(facts);
    backward(facts, true);
    if (without_x) backward(facts, false);
  }

 private:
  float* fresh(const std::string& name, const Doubles& like) {
    return (memory_[name] = Floats(like.size(), NAN)).data();
  }
  Sequence in(const std::string& name) {
    Floats& values = memory_[name];
    return {values.empty() ? nullptr : values.data(), Index{s_.dim} * s_.length, s_.length};
  }
  SequenceOut out(const std::string& name, const Doubles& like) {
    return {like.empty() ? nullptr : fresh(name, like), Index{s_.dim} * s_.length, s_.length};
  }
  Common common() {
    Common c = {};
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.softplus = in_.softplus, c.complex = in_.complex;
    c.u = in("u"), c.delta = in("delta"), c.z = in("z");
    const Index parts = parts_of(c), row = Index{s_.states} * parts, steps = s_.length * parts;
    c.A = memory_["A"].data(), c.A_dim_stride = row, c.A_state_stride = parts;
    const auto projection = [&](const char* name, bool constant, Projection* variable, Matrix* matrix) {
      if (constant) {
        *matrix = {memory_[name].data(), row, parts};
      } else {
        *variable = {memory_[name].data(), s_.groups * s_.states * steps, s_.states * steps, steps};
      }
    };
    projection("B", in_.constant_B, &c.B, &c.constant_B);
    projection("C", in_.constant_C, &c.C, &c.constant_C);
    if (s_.options) c.D = memory_["D"].data(), c.delta_bias = memory_["bias"].data();
    return c;
  }
  void judge(const char* name, const float* got, const Doubles& want) {
    double difference = 0, norm = 1e-300;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(got[i] - want[i], 2);
      norm += want[i] * want[i];
    }
    EXPECT_LT(std::sqrt(difference / norm), 2e-6) << name;
  }

  void forward(const device::DeviceFacts& facts) {
    Forward f = {};
    f.common = common();
    const Index row = numbers_of(f.common), channel = (saved_chunks(s_.length) + 1) * row;
    memory_["x"] = Floats(std::size_t(s_.batch * s_.dim * channel), NAN);
    f.x = x_ = {memory_["x"].data(), s_.dim * channel, channel, row};
    f.out = out("out", in_.u), f.out_z = out("out_z", in_.z);
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward(f, facts, &plan, &message)) << message.text;
    run_plan(plan);
    judge("out", memory_["out"].data(), want_.out);
    judge("out_z", memory_["out_z"].data(), want_.out_z);
    const int parts = parts_of(f.common);
    Floats last;
    for (Index i = 0; i < Index{s_.batch} * s_.dim; ++i)
      for (int n = 0; n < s_.states; ++n)
        for (int part = 0; part < parts; ++part)
          last.push_back(
              memory_["x"][std::size_t(i * channel + channel - 2 * row + (2 * n + 1) * parts + part)]);
    judge("last_state", last.data(), want_.last_state);
  }

  void backward(const device::DeviceFacts& facts, bool with_x) {
    Backward b = {};
    b.common = common();
    b.dout = in("dout"), b.out = in("out");
    if (with_x) b.x = x_;
    b.du = out("du", in_.u), b.ddelta = out("ddelta", in_.u), b.dz = out("dz", in_.z);
    b.out_z = out("again", in_.z);
    b.dA = fresh("dA", in_.A), b.dB = fresh("dB", in_.B), b.dC = fresh("dC", in_.C);
    if (s_.options) b.dD = fresh("dD", in_.D), b.ddelta_bias = fresh("dbias", in_.D);
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_backward(b, facts, &plan, &message)) << message.text;
    run_plan(plan);
    judge("du", memory_["du"].data(), want_.du);
    judge("ddelta", memory_["ddelta"].data(), want_.ddelta);
    judge("dz", memory_["dz"].data(), want_.dz);
    judge("out_z of bwd", memory_["again"].data(), want_.out_z);
    judge("dA", b.dA, want_.dA);
    judge("dB", b.dB, want_.dB);
    judge("dC", b.dC, want_.dC);
    judge("dD", memory_["dD"].data(), want_.dD);
    judge("ddelta_bias", memory_["dbias"].data(), want_.ddelta_bias);
  }

  Shape s_;
  validate::OracleInput in_;
  validate::OracleOutput want_;
  std::map<std::string, Floats> memory_;
  SavedStates x_ = {};
};

TEST(GeneralKernels, AreRightInEveryKind) {
  for (int kind = 1; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    Trial({kind, 1, 10, 34, 3, (kind & 2) != 0 ? 1 : 2, kind % 2 == 1}).check(kLarge, kind == 4);
  }
}
TEST(GeneralKernels, AreRightWhereABlockTakesSeveralTilesOfChannels) {
  Trial({4, 3, 34, 33, 3, 2, true}).check(kSmall, false);
}
TEST(GeneralKernels, AreRightAtTheEdges) {
  Trial({7, 1, 1, 1, 1, 1, true}).check(kLarge, true);
  Trial({4, 1, 8, 32, 16, 1, false}).check(kLarge, true);
  Trial({5, 1, 2, 31, 33, 1, true}).check(kLarge, false);
}

}  // namespace
}  // namespace scankit::selective_scan
