// SPDX-License-Identifier: Apache-2.0
// The backward that asks for a tile's rows, B, C and states while it computes the one after it (option
// Async), for bf16, on the CPU (emulator.h): the same bits as the kernel that reads them when it needs them,
// however late or early the copies happen, and near the fp64 reference of device_check.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "kernels/selective_scan/cuda/emulated_bf16_test.h"
//
#include "kernels/selective_scan/cuda/check_reference.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/emulated_test.h"
#include "validate/random.h"

namespace scankit::selective_scan {
namespace {

using emulator::Block;

constexpr DType kShort = DType::BF16, kFloat = DType::F32;

struct Shape {
  int batch, dim, length, states, groups = 1;
  int warps = 1, segments = 1;
  bool gated = true;      // z
  bool saved = true;      // x is given to the backward, which finds the states itself otherwise
  bool stateful = false;  // an initial state, the last one, and the gradients of both
  int pad = 0;            // elements between rows of a sequence
};

int variant_named(const std::string& name) {
  int i = 0;
#define FORWARD_VARIANT(...)
#define BACKWARD_VARIANT(each, ...) \
  if (name == #each) return i;      \
  ++i;
#include "kernels/selective_scan/cuda/variants.def"
  return -1;
}

void run_plan(device::Plan& plan) {
  std::vector<float4> workspace(plan.workspace_bytes / sizeof(float4) + 1, {NAN, NAN, NAN, NAN});
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) emulate(plan.launches[i]);
}

// A problem as the kernels take it, and what the forward made of it. Memory ends where a page does that
// nobody may read.
class Trial {
 public:
  using Results = std::map<std::string, Doubles>;

  explicit Trial(const Shape& shape) : s_(shape) {
    fill();
    Common& c = common_;
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.dtype = kShort, c.softplus = true;
    c.u = in(u_), c.delta = in(delta_);
    if (s_.gated) c.z = in(z_);
    c.A = A_.data<float>(), c.A_dim_stride = s_.states, c.A_state_stride = 1;
    c.B = projection(B_), c.C = projection(C_);
    c.D = D_.data<float>(), c.delta_bias = bias_.data<float>();
    if (s_.stateful) c.initial_state = given(initial_);
    const Index row = x_.pitch();
    saved_ = {x_.data<float>(), s_.dim * row, row, s_.states};
    forward();
    want_ = run_reference(reference_);
  }

  // By the name of what is found.
  Results backward(const char* variant) {
    Array du = sequence(), ddelta = sequence(), dz = sequence(), out_z = sequence(), dB = rows_of_states(),
          dC = rows_of_states(), dA = floats(s_.dim, s_.states), dD = floats(1, s_.dim),
          dbias = floats(1, s_.dim), dinitial = floats(s_.batch * s_.dim, s_.states);
    Backward b = {};
    b.common = common_;
    b.dout = in(dout_), b.out = in(out_);
    if (s_.saved) b.x = saved_;
    b.du = to(du), b.ddelta = to(ddelta);
    if (s_.gated) b.dz = to(dz), b.out_z = to(out_z);
    b.dA = dA.data<float>(), b.rounded_dB = dB.data(), b.rounded_dC = dC.data();
    b.dD = dD.data<float>(), b.ddelta_bias = dbias.data<float>();
    if (s_.stateful) b.dlast_state = given(dlast_), b.dinitial_state = dinitial.data<float>();
    device::Plan plan = {};
    device::Message message;
    const Choice choice = {variant_named(variant), s_.warps, s_.segments, 2};
    EXPECT_TRUE(plan_backward_as(b, choice, kForward, &plan, &message)) << message.text;
    run_plan(plan);
    Results results = {
        {"du", du.get()}, {"ddelta", ddelta.get()},    {"dA", dA.get()}, {"dB", dB.get()}, {"dC", dC.get()},
        {"dD", dD.get()}, {"ddelta_bias", dbias.get()}};
    if (s_.gated) results["dz"] = dz.get(), results["out_z"] = out_z.get();
    if (s_.stateful) results["dinitial_state"] = dinitial.get();
    for (const Array* each : {&du, &ddelta, &dz, &out_z}) EXPECT_TRUE(each->pads_are_untouched());
    return results;
  }

  void judge(const Results& got) const {
    const ReferenceResult& r = want_;
    const auto near = [&](const char* name, const Doubles& want, double bound) {
      if (got.contains(name)) expect_close(name, got.at(name), want, bound);
    };
    near("du", r.du, kShortBound), near("ddelta", r.ddelta, kShortBound), near("dz", r.dz, kShortBound);
    near("dB", r.dB, kShortBound), near("dC", r.dC, kShortBound), near("out_z", r.out_z, kShortBound);
    near("dA", r.dA, kFloatBound), near("dD", r.dD, kFloatBound);
    near("ddelta_bias", r.ddelta_bias, kFloatBound), near("dinitial_state", r.dinitial, kFloatBound);
  }

 private:
  static constexpr double kShortBound = 5e-3, kFloatBound = 3e-5;  // norm of the difference over the norm
  static constexpr Choice kForward = {2, 2, 1, 1};                 // 4x4

  Array sequence() const { return Array(kShort, Index{s_.batch} * s_.dim, s_.length, s_.pad, true); }
  Array rows_of_states() const {
    return Array(kShort, Index{s_.batch} * s_.groups * s_.states, s_.length, 0, true);
  }
  static Array floats(Index rows, Index columns) { return Array(kFloat, rows, columns, 0, true); }
  Sequence in(const Array& a) const { return {a.data(), s_.dim * a.pitch(), a.pitch()}; }
  SequenceOut to(const Array& a) const { return {a.data(), s_.dim * a.pitch(), a.pitch()}; }
  Projection projection(const Array& a) const {
    return {a.data(), Index{s_.groups} * s_.states * a.pitch(), s_.states * a.pitch(), a.pitch()};
  }
  States given(const Array& a) const { return {a.data<float>(), Index{s_.dim} * s_.states, s_.states}; }
  Doubles random(Array& a, double low, double high) {
    Doubles values = a.get();
    ++seed_;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * validate::unit(seed_, i);
    return a.set(values);
  }

  void fill() {
    ReferenceProblem& r = reference_;
    r.batch = s_.batch, r.dim = s_.dim, r.length = s_.length, r.states = s_.states, r.groups = s_.groups;
    r.softplus = true;
    r.u = random(u_, -1, 1), r.delta = random(delta_, -3, 0), r.dout = random(dout_, -1, 1);
    r.A = random(A_, -2, -0.01), r.B = random(B_, -1, 1), r.C = random(C_, -1, 1);
    r.D = random(D_, -1, 1), r.delta_bias = random(bias_, -0.5, 0.5);
    if (s_.gated) r.z = random(z_, -2, 2);
    if (s_.stateful) r.initial_state = random(initial_, -1, 1), r.dlast_state = random(dlast_, -1, 1);
  }
  void forward() {
    Array out_z = sequence();
    Forward f = {};
    f.common = common_;
    f.out = to(out_), f.x = saved_;
    if (s_.gated) f.out_z = to(out_z);
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward_as(f, kForward, &plan, &message)) << message.text;
    run_plan(plan);
  }

  Shape s_;
  std::uint64_t seed_ = 0;
  Array u_ = sequence(), delta_ = sequence(), z_ = sequence(), dout_ = sequence(), out_ = sequence();
  Array A_ = floats(s_.dim, s_.states), B_ = rows_of_states(), C_ = rows_of_states();
  Array D_ = floats(1, s_.dim), bias_ = floats(1, s_.dim);
  Array initial_ = floats(Index{s_.batch} * s_.dim, s_.states),
        dlast_ = floats(Index{s_.batch} * s_.dim, s_.states);
  Array x_ = floats(Index{s_.batch} * s_.dim, (saved_chunks(s_.length) + 1) * s_.states);
  Common common_ = {};
  SavedStates saved_ = {};
  ReferenceProblem reference_ = {};
  ReferenceResult want_;
};

// Names of those whose bits differ.
std::string differences(const Trial::Results& got, const Trial::Results& want) {
  std::string names;
  for (const auto& [name, values] : want)
    if (std::memcmp(got.at(name).data(), values.data(), values.size() * sizeof(double)) != 0)
      names += name + " ";
  return names;
}

void check(const Shape& shape) {
  SCOPED_TRACE("dim " + std::to_string(shape.dim) + ", length " + std::to_string(shape.length) + ", states " +
               std::to_string(shape.states) + ", warps " + std::to_string(shape.warps));
  Trial trial(shape);
  if (shape.warps > kBackwardVariants[variant_named("4x4_straight")].most_warps) {
    for (const auto copies : {Block::kAtOnce, Block::kLate}) {
      Block::copies() = copies;
      trial.judge(trial.backward("4x4"));
    }
    return;
  }
  const Trial::Results want = trial.backward("4x4_straight");
  trial.judge(want);
  for (const char* variant : {"4x4", "4x4_async_by3"}) {
    if (shape.warps > kBackwardVariants[variant_named(variant)].most_warps) continue;
    for (const auto copies : {Block::kAtOnce, Block::kLate}) {
      Block::copies() = copies;
      EXPECT_EQ(differences(trial.backward(variant), want), "")
          << variant << (copies == Block::kLate ? ", late" : "");
    }
  }
  Block::copies() = Block::kLate;
}

// Rows that come in copies of 16 bytes: in tiles of 32 steps and what is left of them.
TEST(Async, TakesMultiplesOfEightSteps) {
  for (const int length : {8, 24, 32, 40, 64, 136, 296}) {
    check({.batch = 1, .dim = 9, .length = length, .states = 16});
    check({.batch = 2, .dim = 8, .length = length, .states = 16, .gated = false, .pad = 8});
  }
}
// Of 8 bytes.
TEST(Async, TakesMultiplesOfFourSteps) {
  for (const int length : {4, 12, 36, 60, 100, 132}) {
    check({.batch = 1, .dim = 9, .length = length, .states = 16, .stateful = true});
    check({.batch = 2, .dim = 8, .length = length, .states = 13, .gated = false, .pad = 4});
  }
  check({.batch = 2, .dim = 10, .length = 72, .states = 16, .groups = 2, .pad = 4});
}
// That are not copied.
TEST(Async, TakesOtherRows) {
  for (const int length : {3, 33, 98, 131})
    check({.batch = 1, .dim = 9, .length = length, .states = 16, .stateful = true});
  check({.batch = 2, .dim = 8, .length = 64, .states = 16, .pad = 2});
}
// The start states of 12 are read as vectors, those of 13 are not.
TEST(Async, TakesFewerStatesAndSeveralGroups) {
  for (const int states : {12, 13, 1}) {
    for (const bool saved : {false, true}) {
      check({.batch = 1, .dim = 13, .length = 104, .states = states, .saved = saved});
      check({.batch = 2, .dim = 10, .length = 72, .states = states, .groups = 2, .saved = saved});
    }
  }
}
// Of 1 to 16 warps the last has a part of its channels, or none.
TEST(Async, TakesBlocksOfSeveralWarps) {
  for (const int warps : {1, 2, 4, 8, 16}) {
    check({.batch = 1, .dim = warps * 8 - 3, .length = 72, .states = 16, .warps = warps, .saved = false});
    check({.batch = 1, .dim = warps * 8 + 1, .length = 104, .states = 16, .warps = warps, .gated = false});
  }
}
TEST(Async, TakesSegmentsAndStates) {
  for (const bool stateful : {false, true}) {
    for (const bool saved : {false, true}) {
      for (const int segments : {1, 3}) {
        Shape shape = {.batch = 2, .dim = 11, .length = 200, .states = 16, .segments = segments};
        shape.saved = saved, shape.stateful = stateful;
        check(shape);
        shape = {.batch = 1, .dim = 10, .length = 296, .states = 13, .groups = 2, .segments = segments};
        shape.warps = 2, shape.saved = saved, shape.stateful = stateful, shape.gated = false;
        check(shape);
      }
    }
  }
}

// What the tests above find where nobody waits; and which rows come by copies.
TEST(Async, FindsCopiesThatNobodyWaitsFor) {
  for (const char* variant : {"4x4", "4x4_async_by3"}) {
    for (const int length : {104, 100, 98}) {
      SCOPED_TRACE(length);
      Trial trial({.batch = 1, .dim = 9, .length = length, .states = 16});
      const Trial::Results want = trial.backward("4x4_straight");
      Block::copies() = Block::kNever;
      EXPECT_EQ(differences(trial.backward(variant), want),
                length == 98 ? "" : "dA dB dC dD ddelta ddelta_bias du dz out_z ");
      Block::copies() = Block::kLate;
    }
  }
}

}  // namespace
}  // namespace scankit::selective_scan
