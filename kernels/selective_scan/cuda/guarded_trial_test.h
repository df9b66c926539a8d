// SPDX-License-Identifier: Apache-2.0
#pragma once
// A problem for the plain kernels of one element type (SCANKIT_DTYPE), run on the CPU in choices that a test
// names, in memory that ends where a page does that nobody may read, and judged by the fp64
// oracle. Included behind entry.cuh, by a test that has declared `memory`, a block's shared memory.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/emulated_launch_test.h"
#include "kernels/selective_scan/cuda/emulated_test.h"
#include "validate/cases/random.h"
#include "validate/judge/oracle.h"

namespace scankit::selective_scan {

inline constexpr DType kNumber = DType::SCANKIT_DTYPE;

struct Shape {
  int batch, dim, length, states, groups = 1;
  int warps = 1, segments = 1;
  bool gated = true;      // z
  bool saved = true;      // x is given to the backward, which finds the states itself otherwise
  bool stateful = false;  // an initial state, the last one, and the gradients of both
  int pad = 0;            // elements between rows of a sequence
  bool by_dim = false;    // a channel's rows of every batch entry lie side by side
  bool constant_B = false, constant_C = false;
};

inline void run_plan(device::Plan& plan) {
  std::vector<float4> workspace(plan.workspace_bytes / sizeof(float4) + 1, {NAN, NAN, NAN, NAN});
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) emulate(plan.launches[i]);
}

// A problem as the kernels take it, and what the forward made of it.
class Trial {
 public:
  using Results = std::map<std::string, Doubles>;

  // The forward's choice is also that of the one which finds the states that the backward is not given.
  Trial(const Shape& shape, const Choice& forward_choice) : s_(shape), forward_(forward_choice) {
    fill();
    Common& c = common_;
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.dtype = kNumber, c.softplus = true;
    c.u = in(u_), c.delta = in(delta_);
    if (s_.gated) c.z = in(z_);
    c.A = A_.data<float>(), c.A_dim_stride = s_.states, c.A_state_stride = 1;
    if (s_.constant_B)
      c.constant_B = {B_.data<float>(), s_.states, 1};
    else
      c.B = projection(B_);
    if (s_.constant_C)
      c.constant_C = {C_.data<float>(), s_.states, 1};
    else
      c.C = projection(C_);
    c.D = D_.data<float>(), c.delta_bias = bias_.data<float>();
    if (s_.stateful) c.initial_state = given(initial_);
    const Index row = x_.pitch();
    saved_ = {x_.data<float>(), s_.dim * row, row, s_.states};
    forward();
    want_ = validate::run_oracle(input_);
  }

  // By the name of what is found. `late`: du begins so many elements late in its memory.
  Results backward(const Choice& choice, bool saved, int late = 0) {
    Array du(kNumber, Index{s_.batch} * s_.dim, s_.length, s_.pad, late == 0 && ends_whole(), late);
    Array ddelta = sequence(), dz = sequence(), out_z = sequence(), dB = projections(s_.constant_B),
          dC = projections(s_.constant_C), dA = floats(s_.dim, s_.states), dD = floats(1, s_.dim),
          dbias = floats(1, s_.dim), dinitial = floats(s_.batch * s_.dim, s_.states);
    Backward b = {};
    b.common = common_;
    b.dout = in(dout_), b.out = in(out_);
    if (saved) b.x = saved_;
    b.du = to(du), b.ddelta = to(ddelta);
    if (s_.gated) b.dz = to(dz), b.out_z = to(out_z);
    b.dA = dA.data<float>();
    const auto place = [](const Array& a, float** sum, void** rounded) {
      if (a.dtype() == DType::F32)
        *sum = a.data<float>();
      else
        *rounded = a.data();
    };
    place(dB, &b.dB, &b.rounded_dB), place(dC, &b.dC, &b.rounded_dC);
    b.dD = dD.data<float>(), b.ddelta_bias = dbias.data<float>();
    if (s_.stateful) b.dlast_state = given(dlast_), b.dinitial_state = dinitial.data<float>();
    device::Message message;
    last_plan = {};
    EXPECT_TRUE(plan_backward_as(b, choice, forward_, &last_plan, &message)) << message.text;
    run_plan(last_plan);
    Results results = {
        {"du", du.get()}, {"ddelta", ddelta.get()},    {"dA", dA.get()}, {"dB", dB.get()}, {"dC", dC.get()},
        {"dD", dD.get()}, {"ddelta_bias", dbias.get()}};
    if (s_.gated) results["dz"] = dz.get(), results["out_z"] = out_z.get();
    if (s_.stateful) results["dinitial_state"] = dinitial.get();
    for (const Array* each : {&du, &ddelta, &dz, &out_z}) EXPECT_TRUE(each->pads_are_untouched());
    return results;
  }

  // What a forward in another choice finds, x with it.
  Results forward(const Choice& choice) const {
    Array out = sequence(), out_z = sequence(), last = floats(Index{s_.batch} * s_.dim, s_.states);
    Array x = floats(Index{s_.batch} * s_.dim, x_.pitch());
    Forward f = {};
    f.common = common_;
    f.out = to(out), f.x = saved_, f.x.data = x.data<float>();
    if (s_.gated) f.out_z = to(out_z);
    if (s_.stateful) f.last_state = last.data<float>();
    run_forward(f, choice);
    Results results = {{"out", out.get()}, {"x", x.get()}};
    if (s_.gated) results["out_z"] = out_z.get();
    if (s_.stateful) results["last_state"] = last.get();
    for (const Array* each : {&out, &out_z}) EXPECT_TRUE(each->pads_are_untouched());
    return results;
  }

  void judge(const Results& got) const {
    const validate::OracleOutput& r = want_;
    const auto near = [&](const char* name, const Doubles& want, double bound) {
      if (got.contains(name)) expect_close(name, got.at(name), want, bound);
    };
    const double number = kNumber == DType::F32 ? kFloatBound : kShortBound;
    near("out", r.out, number), near("last_state", r.last_state, kFloatBound);
    near("du", r.du, number), near("ddelta", r.ddelta, number), near("dz", r.dz, number);
    near("dB", r.dB, number), near("dC", r.dC, number), near("out_z", r.out_z, number);
    near("dA", r.dA, kFloatBound), near("dD", r.dD, kFloatBound);
    near("ddelta_bias", r.ddelta_bias, kFloatBound), near("dinitial_state", r.dinitial_state, kFloatBound);
  }

  device::Plan last_plan = {};  // of the backward

 private:
  static constexpr double kShortBound = 5e-3, kFloatBound = 3e-5;  // norm of the difference over the norm

  // The bytes of a sequence are whole fp32 numbers, so that it begins with one where it ends with a page.
  bool ends_whole() const {
    return kNumber == DType::F32 || (Index{s_.batch} * s_.dim * (s_.length + s_.pad) - s_.pad) % 2 == 0;
  }
  Array sequence() const { return Array(kNumber, Index{s_.batch} * s_.dim, s_.length, s_.pad, true); }
  Array projections(bool constant) const {
    return constant ? floats(s_.dim, s_.states)
                    : Array(kNumber, Index{s_.batch} * s_.groups * s_.states, s_.length, 0, true);
  }
  static Array floats(Index rows, Index columns) { return Array(DType::F32, rows, columns, 0, true); }
  Index batch_stride(const Array& a) const { return s_.by_dim ? a.pitch() : s_.dim * a.pitch(); }
  Index dim_stride(const Array& a) const { return s_.by_dim ? s_.batch * a.pitch() : a.pitch(); }
  Sequence in(const Array& a) const { return {a.data(), batch_stride(a), dim_stride(a)}; }
  SequenceOut to(const Array& a) const { return {a.data(), batch_stride(a), dim_stride(a)}; }
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
    validate::OracleInput& r = input_;
    r.batch = s_.batch, r.dim = s_.dim, r.length = s_.length, r.states = s_.states, r.groups = s_.groups;
    r.constant_B = s_.constant_B, r.constant_C = s_.constant_C;
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
    run_forward(f, forward_);
  }
  static void run_forward(const Forward& f, const Choice& choice) {
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward_as(f, choice, &plan, &message)) << message.text;
    run_plan(plan);
  }

  Shape s_;
  Choice forward_;
  std::uint64_t seed_ = 0;
  Array u_ = sequence(), delta_ = sequence(), z_ = sequence(), dout_ = sequence(), out_ = sequence();
  Array A_ = floats(s_.dim, s_.states), B_ = projections(s_.constant_B), C_ = projections(s_.constant_C);
  Array D_ = floats(1, s_.dim), bias_ = floats(1, s_.dim);
  Array initial_ = floats(Index{s_.batch} * s_.dim, s_.states),
        dlast_ = floats(Index{s_.batch} * s_.dim, s_.states);
  Array x_ = floats(Index{s_.batch} * s_.dim, (saved_chunks(s_.length) + 1) * s_.states);
  Common common_ = {};
  SavedStates saved_ = {};
  validate::OracleInput input_;
  validate::OracleOutput want_;
};

// Names of those whose bits differ.
inline std::string differences(const Trial::Results& got, const Trial::Results& want) {
  std::string names;
  for (const auto& [name, values] : want)
    if (std::memcmp(got.at(name).data(), values.data(), values.size() * sizeof(double)) != 0)
      names += name + " ";
  return names;
}

}  // namespace scankit::selective_scan
