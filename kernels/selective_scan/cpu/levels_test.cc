// SPDX-License-Identifier: Apache-2.0
// levels_test LEVEL: that this processor, real or emulated, has that level and no better one, and that the
// kernels which cpu_forward and cpu_backward choose on it are right: every kind and dtype against validate's
// oracle. Nothing here chooses an instruction set.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "kernels/common/cpu.h"
#include "kernels/selective_scan/check_number.h"
#include "kernels/selective_scan/cpu/scan.h"
#include "validate/cases/random.h"
#include "validate/judge/oracle.h"

namespace scankit::selective_scan {
namespace {

using Doubles = std::vector<double>;
constexpr Index kPad = 3;  // elements between rows, NaN before and after

// Rows of one of the dtypes.
struct Rows {
  DType dtype = DType::F32;
  Index rows = 0, columns = 0;
  std::vector<unsigned char> bytes;

  Rows() = default;
  Rows(DType type, Index row_count, Index column_count)
      : dtype(type),
        rows(row_count),
        columns(column_count),
        bytes(static_cast<std::size_t>(row_count * (column_count + kPad)) * size_of(type), 0xff) {}
  std::size_t place(Index row, Index column) const {
    return static_cast<std::size_t>(row * pitch() + column) * size_of(dtype);
  }
  Index pitch() const { return columns + kPad; }
  void set(Doubles& values) {  // and rounds them
    for (Index i = 0; i < rows * columns; ++i) {
      const std::uint32_t bits = encode(values[static_cast<std::size_t>(i)], dtype);
      std::memcpy(bytes.data() + place(i / columns, i % columns), &bits, size_of(dtype));
      values[static_cast<std::size_t>(i)] = decode(bits, dtype);
    }
  }
  double get(Index row, Index column) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + place(row, column), size_of(dtype));
    return decode(bits, dtype);
  }
  bool pads_are_untouched() const {
    for (Index row = 0; row < rows; ++row)
      for (std::size_t i = place(row, columns); i < place(row + 1, 0); ++i)
        if (bytes[i] != 0xff) return false;
    return true;
  }
};

struct Shape {
  DType dtype;
  int kind;  // 4: complex, 2: constant B, 1: constant C
  int batch, groups, per_group, length, states;
  bool options, stateful;
};

class Trial {
 public:
  Trial(const Shape& shape, std::uint64_t seed) : s_(shape), seed_(seed) {
    in_.batch = s_.batch, in_.dim = s_.groups * s_.per_group, in_.length = s_.length, in_.states = s_.states;
    in_.groups = s_.groups, in_.softplus = s_.options;
    in_.complex = s_.kind & 4, in_.constant_B = s_.kind & 2, in_.constant_C = s_.kind & 1;
    parts_ = in_.complex ? 2 : 1;
    in_.u = random("u", sequence(), -1, 1);
    in_.delta = random("delta", sequence(), 0, 0.5);
    in_.dout = random("dout", sequence(), -1, 1);
    in_.A = random("A", matrix(), -2, -0.1);
    in_.B = random("B", in_.constant_B ? matrix() : projection(s_.dtype), -1, 1);
    in_.C = random("C", in_.constant_C ? matrix() : projection(s_.dtype), -1, 1);
    if (s_.stateful) in_.initial_state = random("initial", states(), -1, 1);
    if (s_.stateful) in_.dlast_state = random("dlast", states(), -1, 1);
    if (!s_.options) return;
    in_.D = random("D", channel(), -1, 1);
    in_.z = random("z", sequence(), -2, 2);
    in_.delta_bias = random("bias", channel(), -0.5, 0.5);
  }

  bool run(std::map<std::string, double>& worst) {
    const validate::OracleOutput want = validate::run_oracle(in_);
    forward();
    backward();
    const std::pair<const char*, const Doubles*> each[] = {{"out", &want.out},
                                                           {"out_z", &want.out_z},
                                                           {"last_state", &want.last_state},
                                                           {"du", &want.du},
                                                           {"ddelta", &want.ddelta},
                                                           {"dA", &want.dA},
                                                           {"dB", &want.dB},
                                                           {"dC", &want.dC},
                                                           {"dD", &want.dD},
                                                           {"dz", &want.dz},
                                                           {"dbias", &want.ddelta_bias},
                                                           {"dinitial", &want.dinitial_state}};
    for (const auto& [name, values] : each)
      if (rows_.count(name)) judge(name, *values, worst[name]);
    for (const auto& [name, rows] : rows_)
      if (name != "x" && !rows.pads_are_untouched()) fail(name, "wrote between its rows");
    return right_;
  }

 private:
  struct Form {
    DType dtype;
    Index rows, columns;
  };
  Form sequence() const { return {s_.dtype, Index{in_.batch} * in_.dim, in_.length}; }
  Form projection(DType dtype) const {
    return {dtype, Index{in_.batch} * in_.groups * in_.states, Index{in_.length} * parts_};
  }
  Form matrix() const { return {DType::F32, in_.dim, Index{in_.states} * parts_}; }
  Form states() const { return {DType::F32, Index{in_.batch} * in_.dim, Index{in_.states} * parts_}; }
  Form channel() const { return {DType::F32, 1, in_.dim}; }

  Rows& fresh(const char* name, const Form& form) {
    return rows_[name] = Rows(form.dtype, form.rows, form.columns);
  }
  Doubles random(const char* name, const Form& form, double low, double high) {
    Doubles values(static_cast<std::size_t>(form.rows * form.columns));
    ++seed_;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * validate::unit(seed_, i);
    fresh(name, form).set(values);
    return values;
  }
  // A result that the interface has contiguous: without pads.
  float* packed(const char* name, const Form& form) {
    return results_[name].assign(static_cast<std::size_t>(form.rows * form.columns), std::nanf("")),
           fresh(name, form), results_[name].data();
  }
  const float* floats(const char* name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : reinterpret_cast<const float*>(found->second.bytes.data());
  }
  Sequence in(const char* name) const {
    const auto found = rows_.find(name);
    if (found == rows_.end()) return {};
    return {found->second.bytes.data(), in_.dim * found->second.pitch(), found->second.pitch()};
  }
  SequenceOut out(const char* name) {
    Rows& rows = fresh(name, sequence());
    return {rows.bytes.data(), in_.dim * rows.pitch(), rows.pitch()};
  }
  States state(const char* name) const {
    const Index row = Index{in_.states} * parts_ + kPad;
    return {floats(name), in_.dim * row, row};
  }

  Common common() const {
    Common c = {};
    c.batch = in_.batch, c.dim = in_.dim, c.length = in_.length, c.states = in_.states;
    c.groups = in_.groups, c.softplus = in_.softplus, c.complex = in_.complex, c.dtype = s_.dtype;
    c.u = in("u"), c.delta = in("delta"), c.z = in("z");
    const Index row = Index{in_.states} * parts_ + kPad;
    c.A = floats("A"), c.A_dim_stride = row, c.A_state_stride = parts_;
    const auto project = [&](const char* name, bool constant, Projection* variable, Matrix* matrix) {
      const Rows& rows = rows_.at(name);
      if (constant) {
        *matrix = {floats(name), row, parts_};
      } else {
        *variable = {rows.bytes.data(), in_.groups * in_.states * rows.pitch(), in_.states * rows.pitch(),
                     rows.pitch()};
      }
    };
    project("B", in_.constant_B, &c.B, &c.constant_B);
    project("C", in_.constant_C, &c.C, &c.constant_C);
    c.D = floats("D"), c.delta_bias = floats("bias");
    if (s_.stateful) c.initial_state = state("initial");
    return c;
  }

  void forward() {
    Forward f = {};
    f.common = common();
    const Index row = numbers_of(f.common), rows = saved_chunks(in_.length) + 1;
    f.out = out("out");
    if (s_.options) f.out_z = out("out_z");
    f.x = {packed("x", {DType::F32, Index{in_.batch} * in_.dim, rows * row}), in_.dim * rows * row,
           rows * row, row};
    f.last_state = packed("last_state", states());
    x_ = f.x;
    if (const char* failure = cpu_forward(f)) fail("forward", failure);
  }
  void backward() {
    Backward b = {};
    b.common = common();
    b.dout = in("dout"), b.out = in("out"), b.x = x_;
    b.du = out("du"), b.ddelta = out("ddelta");
    b.dA = packed("dA", matrix());
    b.dB = packed("dB", in_.constant_B ? matrix() : projection(DType::F32));
    b.dC = packed("dC", in_.constant_C ? matrix() : projection(DType::F32));
    if (s_.options)
      b.dz = out("dz"), b.dD = packed("dD", channel()), b.ddelta_bias = packed("dbias", channel());
    if (s_.stateful) b.dlast_state = state("dlast"), b.dinitial_state = packed("dinitial", states());
    if (const char* failure = cpu_backward(b)) fail("backward", failure);
  }

  // Norm of the difference over the norm, against what rounding to the dtype explains.
  void judge(const std::string& name, const Doubles& want, double& worst) {
    const Rows& rows = rows_.at(name);
    const auto own = results_.find(name);
    double difference = 0, norm = 0, rounding = 0;
    for (Index i = 0; i < rows.rows * rows.columns; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double got =
          own == results_.end() ? rows.get(i / rows.columns, i % rows.columns) : own->second[at];
      difference += (got - want[at]) * (got - want[at]);
      norm += want[at] * want[at];
      rounding += std::pow(rounded(want[at], rows.dtype) - want[at], 2);
    }
    const double bound = 4 * std::sqrt(rounding) + 2e-5 * std::sqrt(norm) + 1e-30;
    const double ratio = std::sqrt(difference) / bound;
    if (!(worst >= ratio)) worst = ratio;
    if (!(ratio <= 1)) fail(name, "is wrong");
  }
  void fail(const std::string& name, const char* how) {
    std::printf("FAILED: dtype %d kind %d B%d G%d D%d L%d N%d%s%s: %s %s\n", static_cast<int>(s_.dtype),
                s_.kind, in_.batch, in_.groups, in_.dim, in_.length, in_.states, s_.options ? " options" : "",
                s_.stateful ? " stateful" : "", name.c_str(), how);
    right_ = false;
  }

  Shape s_;
  std::uint64_t seed_;
  int parts_ = 1;
  validate::OracleInput in_;
  std::map<std::string, Rows> rows_;
  std::map<std::string, std::vector<float>> results_;
  SavedStates x_ = {};
  bool right_ = true;
};

Shape shape_of(std::uint64_t seed, int dtype, int kind) {
  validate::Stream random(seed);
  const int per_group[] = {1, 3, 4, 8, 16, 19}, lengths[] = {1, 7, 31, 32, 33, 64, 70},
            states[] = {1, 2, 3, 4, 7};
  Shape s = {static_cast<DType>(dtype), kind,
             1 + random.below(2),       1,
             random.pick(per_group),    random.pick(lengths),
             random.pick(states),       random.chance(60),
             random.chance(40)};
  if (!(kind & 2) && random.chance(40)) s.groups = 2;
  return s;
}

int run(const char* wanted) {
  const char* level = cpu_level_name(cpu_level());
  std::printf("level %s, chosen %s\n", level, cpu_level_name(chosen_cpu_level()));
  if (std::strcmp(level, wanted) != 0 || chosen_cpu_level() != cpu_level()) {
    std::printf("FAILED: expected %s\n", wanted);
    return 1;
  }
  std::map<std::string, double> worst;
  int right = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (int dtype = 0; dtype < 3; ++dtype)
      for (int kind = 0; kind < 8; ++kind, ++all) {
        const std::uint64_t own = seed * 100 + static_cast<std::uint64_t>(dtype * 8 + kind);
        right += Trial(shape_of(own, dtype, kind), own * 100).run(worst) ? 1 : 0;
      }
  for (const auto& [name, ratio] : worst) std::printf("%s %.2f  ", name.c_str(), ratio);
  std::printf("of the bound at worst\n%d of %d cases right\n", right, all);
  return right == all ? 0 : 1;
}

}  // namespace
}  // namespace scankit::selective_scan

int main(int count, char** arguments) {
  if (count == 2) return scankit::selective_scan::run(arguments[1]);
  std::fprintf(stderr, "usage: %s avx512|avx2|portable|neon\n", arguments[0]);
  return 2;
}
