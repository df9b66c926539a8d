// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validate/judge/judge.h"

// The one generator of contract cases for `selective_scan_cuda`. A case says everything: shapes, strides,
// which optional inputs there are, and how each element is drawn. The Python harness makes the tensors
// from that, and has no generator of its own.
namespace scankit::validate {

enum class FillKind {
  None,     // a destination: poisoned, not filled
  Uniform,  // [a, b)
  Normal,   // mean a, deviation b; the sum of four uniforms, so exact in both languages, and bounded
  Binade    // 2^e (1 + uniform), e one of the integers a..b
};
// How the elements of a tensor are drawn.
struct Fill {
  FillKind kind = FillKind::None;
  double a = 0, b = 0;
  bool negative = false;                     // Binade only
  double spike_chance = 0, spike_value = 0;  // an element is spike_value with this probability
};

// A tensor in a storage that is larger than the tensor.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape, strides;  // in elements
  std::int64_t offset = 0, storage = 0;      // the rest of the storage is a guard that nobody may touch
  Fill fill;
  std::uint64_t seed = 0;
  Fill imaginary;           // of a complex tensor, whose real parts follow `fill`
  std::int64_t poked = -1;  // one element, counted along the shape, that is not finite; -1: none is
  double poke = 0;
  std::int64_t count() const;
};

// One call of fwd and bwd (or of another function of the module) with all of its inputs.
struct Case {
  std::string id;
  Dtype dtype = Dtype::F32;
  int batch = 1, dim = 1, length = 1, states = 1, groups = 1;
  bool softplus = false;
  bool recompute_out_z = false;
  bool give_x = true;  // false: bwd gets None, which the contract allows up to 2048 steps
  // Of the functions beside fwd and bwd alone: initial_state, dlast_state among the tensors, and where packed
  // sequences begin, with the end; empty: the batch.
  bool stateful = false;
  std::vector<int> cu_seqlens;
  bool step =
      false;  // of state_update: one step, whose initial_state may have 16 bits and is changed in place
  // Of a convolution alone; width 0 is a scan.
  int width = 0;
  bool silu = false;
  int sequence = 0;     // steps of each packed sequence; 0: all one
  bool refill = false;  // the same tensors hold other data, then everything once more: a cached answer shows
  std::vector<TensorSpec> tensors;  // u delta A B C [D] [z] [delta_bias] dout [dz: preallocated destination]
  const TensorSpec* find(std::string_view name) const;
  bool complex() const;                         // A, the states, and so B and C
  bool constant(std::string_view which) const;  // "B" or "C": (dim, states), the same at every step
  bool finite() const;                          // no input is poked
};

// Shapes are fixed in the quick list; the data always follows `seed`.
std::vector<Case> quick_cases(std::uint64_t seed);
// The quick list and `count` more whose shapes follow the seed too.
std::vector<Case> full_cases(std::uint64_t seed, int count = 300);

// Infinities and NaN among the inputs, empty tensors, one extent beyond what a grid's second axis takes.
std::vector<Case> hostile_cases(std::uint64_t seed);
// 65536 steps.
std::vector<Case> long_cases(std::uint64_t seed);

// Of fwd_stateful, bwd_stateful and state_update: a fixed
// list, and `random` more whose shapes follow the seed.
std::vector<Case> stateful_cases(std::uint64_t seed, int random);

// A scan of one step, a real A and B and C that vary. model: laid out as a model's tensors.
struct StepShape {
  Dtype dtype;
  int batch, dim, states, groups;
  const char* options;  // of D z b(ias) s(oftplus)
  bool model;
};
Case one_step(std::string id, const StepShape& shape, std::uint64_t seed);

// Of causal_conv1d_cuda: a fixed list, and `random` more whose shapes follow the seed. The
// tensors are x weight [bias] dout [initial dinitial] [dfinal final] out dx; out, final, dx and
// dinitial are destinations.
std::vector<Case> conv_cases(std::uint64_t seed, int random);
// The modules that there are cases for. A file may hold one of them under any name.
const std::vector<std::string>& validated_modules();
// What the module of that name, or in that file, is to be called with: VMamba's have no z, no complex A, and
// B and C that vary, and no function beside fwd and bwd.
std::vector<Case> cases_of(const std::string& module, std::uint64_t seed, bool full);

// One JSON object, in one line.
std::string case_to_json(const Case& c);

}  // namespace scankit::validate
