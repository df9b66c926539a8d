// SPDX-License-Identifier: Apache-2.0
#pragma once
// A case of the contract for the emulated device code: memory with guards, the plan run block by block, and
// every result against the fp64 oracle. Included after the device code.
#include <map>
#include <memory>
#include <string>

#include "kernels/selective_scan/cuda/emulated_test.h"
#include "validate/cases/random.h"
#include "validate/judge/oracle.h"

namespace scankit::selective_scan {

template <class T>
std::function<void()> general_body(const std::string& symbol, const device::Launch& launch) {
  if (symbol == "scankit_general_forward_real") return body_of(&general_forward<T, false>, launch);
  if (symbol == "scankit_general_forward_complex") return body_of(&general_forward<T, true>, launch);
  if (symbol == "scankit_general_backward_real") return body_of(&general_backward<T, false>, launch);
  if (symbol == "scankit_general_backward_complex") return body_of(&general_backward<T, true>, launch);
  return {};
}

template <class T>
std::function<void()> plain_body(const std::string& symbol, const device::Launch& launch) {
#define FORWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, options, \
                        part)                                                                                \
  if (symbol == "scankit_forward_" #name)                                                                    \
    return body_of(&forward_kernel<T, Layout<lanes, per, channels>, sliced,                                  \
                                   typename OptionsOf<options, T::kSize>::Type>,                             \
                   launch);
#define BACKWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, \
                         options, part)                                                              \
  if (symbol == "scankit_backward_" #name)                                                           \
    return body_of(&backward_kernel<T, Layout<lanes, per, channels>, sliced,                         \
                                    typename OptionsOf<options, T::kSize>::Type>,                    \
                   launch);
#include "kernels/selective_scan/cuda/variants.def"
  if (symbol == "scankit_forward_ends") return body_of(&ends_kernel<T, false>, launch);
  if (symbol == "scankit_backward_ends") return body_of(&ends_kernel<T, true>, launch);
  return {};
}

template <class T>
std::function<void()> constant_body(const std::string& symbol, const device::Launch& launch) {
#define CONSTANT_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options) \
  if (symbol == "scankit_constant_forward")                                                     \
    return body_of(&forward_kernel<T, Layout<lanes, per, channels>, false,                      \
                                   typename OptionsOf<options, T::kSize>::Type>,                \
                   launch);
#define CONSTANT_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options) \
  if (symbol == "scankit_constant_backward")                                                     \
    return body_of(&backward_kernel<T, Layout<lanes, per, channels>, false,                      \
                                    typename OptionsOf<options, T::kSize>::Type>,                \
                   launch);
#include "kernels/selective_scan/cuda/variants.def"
  if (symbol == "scankit_constant_forward_ends") return body_of(&ends_kernel<T, false, true>, launch);
  if (symbol == "scankit_constant_backward_ends") return body_of(&ends_kernel<T, true, true>, launch);
  return {};
}

template <class T>
std::function<void()> packed_body(const std::string& symbol, const device::Launch& launch) {
#define PACKED_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)          \
  if (symbol == "scankit_packed_forward")                                                              \
    return body_of(                                                                                    \
        &packed_forward<T, Layout<lanes, per, channels>, typename OptionsOf<options, T::kSize>::Type>, \
        launch);
#define PACKED_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)          \
  if (symbol == "scankit_packed_backward")                                                              \
    return body_of(                                                                                     \
        &packed_backward<T, Layout<lanes, per, channels>, typename OptionsOf<options, T::kSize>::Type>, \
        launch);
#include "kernels/selective_scan/cuda/variants.def"
  return {};
}

inline void run_launch(const device::Launch& launch) {
  const auto& [unit, symbol] = kCudaKernels[launch.kernel];
  ASSERT_LE(launch.shared_bytes, sizeof memory);
  std::function<void()> body;
  if (unit == std::string("general_f32")) body = general_body<Float>(symbol, launch);
  if (unit == std::string("general_bf16")) body = general_body<BFloat>(symbol, launch);
  if (unit == std::string("constant_f32")) body = constant_body<Float>(symbol, launch);
  if (unit == std::string("constant_bf16")) body = constant_body<BFloat>(symbol, launch);
  if (unit == std::string("packed_f32")) body = packed_body<Float>(symbol, launch);
  if (unit == std::string("packed_bf16")) body = packed_body<BFloat>(symbol, launch);
  if (const std::string_view name = unit; name.starts_with("forward_") || name.starts_with("backward_")) {
    if (name.ends_with("_f32")) body = plain_body<Float>(symbol, launch);
    if (name.ends_with("_bf16")) body = plain_body<BFloat>(symbol, launch);
  }
  if (unit == std::string("reduce")) body = body_of(&reduce_kernel, launch);
  ASSERT_TRUE(body) << unit << " " << symbol;
  run_blocks(launch, body, [] { std::memset(memory, 0xff, sizeof memory); });  // NaN
}
inline void run_plan(device::Plan& plan) {
  const Guarded workspace((plan.workspace_bytes + 15) / 16 * 16, true);
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) run_launch(plan.launches[i]);
}

struct Shape {
  int kind;  // 4: complex, 2: constant B, 1: constant C
  int batch, dim, length, states, groups;
  bool options;
  DType dtype = DType::F32;
  bool initial = false, last = false;  // an initial state; the last one and its gradient
  std::vector<int> cu_seqlens = {};
  bool dense = false;  // no pads between rows
};

// The case as the kernels take it, in memory that they fill.
class Trial {
 public:
  explicit Trial(const Shape& shape, bool at_end = true) : s_(shape), at_end_(at_end) {
    sequences_ = s_.cu_seqlens.empty() ? s_.batch : Index(s_.cu_seqlens.size()) - 1;
    in_.batch = s_.batch, in_.dim = s_.dim, in_.length = s_.length, in_.states = s_.states;
    in_.groups = s_.groups, in_.softplus = s_.options;
    in_.complex = (s_.kind & 4) != 0, in_.constant_B = (s_.kind & 2) != 0,
    in_.constant_C = (s_.kind & 1) != 0;
    parts_ = in_.complex ? 2 : 1;
    in_.u = random("u", sequence(), -1, 1);
    in_.delta = random("delta", sequence(), 0, 0.5);
    in_.dout = random("dout", sequence(), -1, 1);
    in_.A = random("A", matrix(), -2, -0.1);
    in_.B = random("B", in_.constant_B ? matrix() : projection(s_.dtype, 5), -1, 1);
    in_.C = random("C", in_.constant_C ? matrix() : projection(s_.dtype, 5), -1, 1);
    if (s_.initial) in_.initial_state = random("initial", state(), -1, 1);
    if (s_.last) in_.dlast_state = random("dlast", state(), -1, 1);
    if (!s_.options) return;
    in_.D = random("D", channel(), -1, 1);
    in_.z = random("z", sequence(), -2, 2);
    in_.delta_bias = random("bias", channel(), -0.5, 0.5);
  }

  void check(const device::DeviceFacts& facts, bool without_x = false, bool with_x = true) {
    in_.cu_seqlens = s_.cu_seqlens;
    want_ = validate::run_oracle(in_);
    forward(facts, with_x);
    if (with_x) backward(facts, true);
    if (without_x) backward(facts, false);
    for (const auto& [name, array] : arrays_) EXPECT_TRUE(array->pads_are_untouched()) << name;
  }
  // Nothing is judged: the guards would end the test.
  void run_unjudged(const device::DeviceFacts& facts) {
    unjudged_ = true;
    for (const bool with_x : {true, false}) forward(facts, with_x), backward(facts, with_x);
    for (const auto& [name, array] : arrays_) EXPECT_TRUE(array->pads_are_untouched()) << name;
  }

 private:
  struct Form {
    DType dtype;
    Index rows, columns, pad;
  };
  Form sequence() const { return {s_.dtype, Index{s_.batch} * s_.dim, s_.length, s_.dense ? 0 : 3}; }
  Form projection(DType dtype, Index pad) const {
    return {dtype, Index{s_.batch} * s_.groups * s_.states, Index{s_.length} * parts_, s_.dense ? 0 : pad};
  }
  Form matrix() const { return {DType::F32, s_.dim, Index{s_.states} * parts_, 0}; }
  Form state() const { return {DType::F32, sequences_ * s_.dim, Index{s_.states} * parts_, 0}; }
  Form channel() const { return {DType::F32, 1, s_.dim, 0}; }

  Array& fresh(const std::string& name, const Form& form) {
    auto& array = arrays_[name];
    array = std::make_unique<Array>(form.dtype, form.rows, form.columns, form.pad, at_end_);
    return *array;
  }
  float* floats(const std::string& name, const Form& form) { return fresh(name, form).data<float>(); }
  Doubles random(const std::string& name, const Form& form, double low, double high) {
    Doubles values(std::size_t(form.rows * form.columns));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = low + (high - low) * validate::unit(++seed_, i);
    return fresh(name, form).set(values);
  }
  Sequence in(const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) return {};
    const Array& array = *found->second;
    return {array.data(), s_.dim * array.pitch(), array.pitch()};
  }
  SequenceOut out(const std::string& name) {
    const Array& array = fresh(name, sequence());
    return {array.data(), s_.dim * array.pitch(), array.pitch()};
  }
  States states(const std::string& name, bool given) {
    const Index row = Index{s_.states} * parts_;
    return {given ? arrays_[name]->data<float>() : nullptr, s_.dim * row, row};
  }
  Common common() {
    Common c = {};
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.softplus = in_.softplus, c.complex = in_.complex, c.dtype = s_.dtype;
    c.u = in("u"), c.delta = in("delta"), c.z = in("z");
    const Index row = Index{s_.states} * parts_;
    c.A = arrays_["A"]->data<float>(), c.A_dim_stride = row, c.A_state_stride = parts_;
    const auto projection = [&](const char* name, bool constant, Projection* variable, Matrix* matrix) {
      const Array& array = *arrays_[name];
      if (constant) {
        *matrix = {array.data<float>(), row, parts_};
      } else {
        *variable = {array.data(), s_.groups * s_.states * array.pitch(), s_.states * array.pitch(),
                     array.pitch()};
      }
    };
    projection("B", in_.constant_B, &c.B, &c.constant_B);
    projection("C", in_.constant_C, &c.C, &c.constant_C);
    if (s_.options) c.D = arrays_["D"]->data<float>(), c.delta_bias = arrays_["bias"]->data<float>();
    c.initial_state = states("initial", s_.initial);
    if (s_.cu_seqlens.empty()) return c;
    cu_seqlens_ = std::make_unique<Guarded>(4 * s_.cu_seqlens.size(), at_end_);
    std::memcpy(cu_seqlens_->data(), s_.cu_seqlens.data(), 4 * s_.cu_seqlens.size());
    c.packed = {reinterpret_cast<const int*>(cu_seqlens_->data()), int(sequences_)};
    return c;
  }
  void judge(const char* name, const Doubles& want) {
    if (want.empty()) return;
    expect_close(name, arrays_[name]->get(), want, arrays_[name]->dtype() == DType::F32 ? 2e-6 : 5e-3);
  }

  void forward(const device::DeviceFacts& facts, bool with_x) {
    Forward f = {};
    f.common = common();
    const Index row = numbers_of(f.common), chunks = saved_chunks(s_.length);
    const Index rows = s_.cu_seqlens.empty() ? chunks + 1 : packed_chunks(s_.length, sequences_);
    if (with_x)
      f.x = {floats("x", {DType::F32, Index{s_.batch} * s_.dim, rows * row, 0}), s_.dim * rows * row,
             rows * row, row};
    x_ = f.x;
    f.out = out("out");
    if (s_.options) f.out_z = out("out_z");
    if (s_.last) f.last_state = floats("last_state", state());
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward(f, facts, &plan, &message)) << message.text;
    run_plan(plan);
    if (unjudged_) return;
    judge("out", want_.out);
    judge("out_z", want_.out_z);
    if (s_.last) judge("last_state", want_.last_state);
    if (with_x) judge_saved(rows);
  }
  // The last saved state of each sequence: params.h says where it stands.
  void judge_saved(Index rows) {
    const Doubles x = arrays_["x"]->get();
    const Index row = Index{s_.states} * parts_;
    const bool packed = !s_.cu_seqlens.empty();
    Doubles got, want;
    for (Index i = 0; i < sequences_ * s_.dim; ++i) {
      const std::size_t s = std::size_t(i / s_.dim);
      if (packed && s_.cu_seqlens[s + 1] == s_.cu_seqlens[s]) continue;
      const Index place = packed ? i % s_.dim * rows + s_.cu_seqlens[s] / kStateInterval + Index(s) +
                                       chunk_count(s_.cu_seqlens[s + 1] - s_.cu_seqlens[s]) - 1
                                 : (i + 1) * rows - 2;
      for (Index n = 0; n < row; ++n) {
        got.push_back(
            x[std::size_t(place * row + (packed ? n : (2 * (n / parts_) + 1) * parts_ + n % parts_))]);
        want.push_back(want_.last_state[std::size_t(i * row + n)]);
      }
    }
    expect_close("last state in x", got, want, 2e-6);
  }

  void backward(const device::DeviceFacts& facts, bool with_x) {
    Backward b = {};
    b.common = common();
    b.dout = in("dout"), b.out = in("out");
    if (with_x) b.x = x_;
    b.du = out("du"), b.ddelta = out("ddelta");
    const Form variable = projection(DType::F32, 0);
    b.dA = floats("dA", matrix());
    b.dB = floats("dB", in_.constant_B ? matrix() : variable);
    b.dC = floats("dC", in_.constant_C ? matrix() : variable);
    if (s_.options) {
      b.dz = out("dz"), b.out_z = out("out_z");
      b.dD = floats("dD", channel()), b.ddelta_bias = floats("ddelta_bias", channel());
    }
    b.dlast_state = states("dlast", s_.last);
    if (s_.initial) b.dinitial_state = floats("dinitial_state", state());
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_backward(b, facts, &plan, &message)) << message.text;
    run_plan(plan);
    if (unjudged_) return;
    judge("du", want_.du);
    judge("ddelta", want_.ddelta);
    judge("dz", want_.dz);
    judge("out_z", want_.out_z);
    judge("dA", want_.dA);
    judge("dB", want_.dB);
    judge("dC", want_.dC);
    judge("dD", want_.dD);
    judge("ddelta_bias", want_.ddelta_bias);
    if (s_.initial) judge("dinitial_state", want_.dinitial_state);
  }

  Shape s_;
  bool at_end_, unjudged_ = false;
  Index sequences_ = 0, parts_ = 1;
  std::uint64_t seed_ = 0;
  validate::OracleInput in_;
  validate::OracleOutput want_;
  std::map<std::string, std::unique_ptr<Array>> arrays_;
  std::unique_ptr<Guarded> cu_seqlens_;
  SavedStates x_ = {};
};

}  // namespace scankit::selective_scan
