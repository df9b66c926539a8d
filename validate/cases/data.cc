// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "doctor/model/json.h"
#include "validate/cases/cases.h"
#include "validate/cases/random.h"
#include "validate/run/run.h"

// The data and the layout of a case's tensors, the list of tasks of a run, and cases as JSON
// for the harness.
namespace scankit::validate {
namespace {

// Element i before rounding. harness/tensors.py does the same operations in the same order, and a test
// compares the two bit by bit: reordering a sum here changes the last bit. Each element has four draws, 4
// i to 4 i + 3.
double element(const Fill& fill, std::uint64_t seed, std::uint64_t spikes, std::uint64_t i) {
  if (fill.spike_chance > 0 && unit(spikes, i) < fill.spike_chance) return fill.spike_value;
  const auto part = [&](std::uint64_t k) { return unit(seed, 4 * i + k); };
  switch (fill.kind) {
    case FillKind::Uniform:
      return fill.a + (fill.b - fill.a) * part(0);
    case FillKind::Normal:
      // The sum of four uniforms has mean 2 and variance 1/3; the factor is sqrt(3).
      return fill.a + fill.b * (1.7320508075688772 * (part(0) + part(1) + part(2) + part(3) - 2.0));
    case FillKind::Binade: {
      const double exponent = fill.a + std::floor((fill.b - fill.a + 1) * part(0));
      const double value = std::ldexp(1.0 + part(1), static_cast<int>(exponent));
      return fill.negative ? -value : value;
    }
    case FillKind::None:
      break;
  }
  return 0;
}

}  // namespace

std::vector<double> make_data(const TensorSpec& spec) {
  std::vector<double> data;
  if (spec.fill.kind == FillKind::None) return data;
  const auto count = static_cast<std::uint64_t>(spec.count());
  const bool complex = spec.dtype == Dtype::C64;
  const std::uint64_t spikes = mix(spec.seed),
                      second = mix(spikes);  // seeds of the spikes, the imaginary parts
  data.reserve(complex ? 2 * count : count);
  for (std::uint64_t i = 0; i < count; ++i) {
    data.push_back(rounded(spec.dtype, element(spec.fill, spec.seed, spikes, i)));
    if (complex) data.push_back(rounded(spec.dtype, element(spec.imaginary, second, mix(second), i)));
  }
  if (spec.poked >= 0) data[static_cast<std::size_t>(spec.poked)] = spec.poke;
  return data;
}

namespace {

// Row-major strides, except that the rows are `pitch` elements apart.
std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape, std::int64_t pitch) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  if (shape.size() >= 2) strides[shape.size() - 2] = pitch;
  for (std::size_t i = shape.size() - 1; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Puts the tensor `offset` elements into a storage that ends kGuard elements after the tensor's last one.
void place(TensorSpec& spec, std::int64_t offset) {
  spec.offset = offset;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    last += std::max<std::int64_t>(spec.shape[i] - 1, 0) * spec.strides[i];
  spec.storage = offset + last + 1 + kGuard;
}

}  // namespace

void lay_out(TensorSpec& spec, Layout layout) {
  const std::int64_t length = spec.shape.back();
  spec.strides = row_major(spec.shape, layout == Layout::LongerRows ? length + 3 : length);
  std::int64_t offset = layout == Layout::AtStart ? 0 : kGuard + (layout == Layout::Misaligned ? 3 : 0);
  const bool sequence = spec.shape.size() == 3;
  if (sequence && (layout == Layout::ChannelMajor || layout == Layout::HalfOfWider)) {
    const std::int64_t batch = spec.shape[0], dim = spec.shape[1];
    spec.strides = {length, batch * length, 1};
    if (layout == Layout::HalfOfWider) offset += dim * batch * length;
  }
  place(spec, offset);
}

void lay_out_matrix(TensorSpec& spec, MatrixLayout layout) {
  spec.strides = row_major(spec.shape, spec.shape.back());
  if (layout == MatrixLayout::Transposed) spec.strides = {1, spec.shape[0]};
  place(spec, kGuard);
}

namespace {

// Cases up to this size also run on a side stream and in a CUDA graph: both show the same at every size.
constexpr std::int64_t kOtherWays = 100000;  // states over all steps
bool in_other_ways(const Case& c) {
  const std::int64_t states = std::int64_t{c.batch} * c.dim * c.length * c.states;
  return c.width == 0 && !c.stateful && states > 0 && states <= kOtherWays;
}

// Between bands each tensor is an allocation of the driver's own, which is slow, so that only small
// cases run there.
constexpr std::int64_t kBetweenBands = 20000;  // states over all steps
bool between_bands(const Case& c) {
  const std::int64_t states = std::int64_t{c.batch} * c.dim * c.length * std::max(c.states, 1);
  return states > 0 && states <= kBetweenBands;
}

}  // namespace

std::string first_gpu(const std::vector<std::string>& devices) {
  const auto found = std::ranges::find_if_not(devices, on_cpu);
  return found == devices.end() ? "" : *found;
}

std::vector<Task> banded_tasks_of(const ValidateRequest& request) {
  std::vector<Task> tasks;
  const std::string gpu = first_gpu(request.devices);
  for (const Case& c : request.cases)
    if (!gpu.empty() && between_bands(c)) tasks.push_back({&c, gpu + "+bands"});
  return tasks;
}

std::vector<Task> tasks_of(const ValidateRequest& request) {
  std::vector<Task> tasks;
  const std::string first = first_gpu(request.devices);
  for (const Case& c : request.cases) {
    for (const std::string& device : request.devices) {
      tasks.push_back({&c, device});
      if (device == first && in_other_ways(c))
        for (const char* way : {"+stream", "+graph"}) tasks.push_back({&c, device + way});
      if (!request.against.empty() && !c.stateful) tasks.push_back({&c, device + "@against"});
    }
  }
  return tasks;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson fill_json(const Fill& fill) {
  static constexpr const char* kNames[] = {"none", "uniform", "normal", "binade"};
  OrderedJson json{{"kind", kNames[static_cast<int>(fill.kind)]}, {"a", fill.a}, {"b", fill.b}};
  if (fill.negative) json["negative"] = true;
  if (fill.spike_chance > 0) json["spike"] = {fill.spike_chance, fill.spike_value};
  return json;
}

// The harness reads this (harness/tensors.py); --list-cases prints it.
OrderedJson tensor_spec_json(const TensorSpec& t) {
  // The seed as text: a JSON number above 2^53 is not exact everywhere.
  OrderedJson json{{"dtype", dtype_name(t.dtype)},  {"shape", t.shape},
                   {"strides", t.strides},          {"offset", t.offset},
                   {"storage", t.storage},          {"fill", fill_json(t.fill)},
                   {"seed", std::to_string(t.seed)}};
  if (t.dtype == Dtype::C64) json["imaginary"] = fill_json(t.imaginary);
  if (t.poked >= 0)  // JSON knows no such number
    json["poke"] = {t.poked, std::isnan(t.poke) ? "nan" : t.poke > 0 ? "inf" : "-inf"};
  return json;
}

}  // namespace

std::string case_to_json(const Case& c) {
  OrderedJson json{
      {"id", c.id},         {"dtype", dtype_name(c.dtype)}, {"batch", c.batch},
      {"dim", c.dim},       {"length", c.length},           {"states", c.states},
      {"groups", c.groups}, {"softplus", c.softplus},       {"recompute_out_z", c.recompute_out_z},
      {"give_x", c.give_x}, {"refill", c.refill},           {"finite", c.finite()}};
  if (c.width > 0) {
    json["width"] = c.width;
    json["silu"] = c.silu;
    json["sequence"] = c.sequence;
  }
  if (c.stateful) json["stateful"] = true;
  if (c.step) json["step"] = true;
  if (!c.cu_seqlens.empty()) json["cu_seqlens"] = c.cu_seqlens;
  OrderedJson tensors = OrderedJson::object();
  for (const TensorSpec& tensor : c.tensors) tensors[tensor.name] = tensor_spec_json(tensor);
  json["tensors"] = std::move(tensors);
  return dump_json(json);
}

// What is timed on each device: shapes of real models, and one shape in several lengths for the plot
// over the length.

namespace {

constexpr int kTimedStates = 16;

void add_shape(std::vector<TimedShape>& shapes, const std::string& device, const char* dtype, int batch,
               int dim, int length, double seconds) {
  shapes.push_back({device, dtype, batch, dim, length, kTimedStates, seconds, false, false});
}

}  // namespace

// The first shape of each device also runs plain PyTorch, which needs memory for every state; the last
// one is so small that it measures what a call costs its caller. Seconds are the time for all samples
// of a shape.
std::vector<TimedShape> timed_shapes(const std::string& device, bool full) {
  std::vector<TimedShape> shapes;
  if (device == "cpu") {
    shapes.push_back({device, "fp32", 2, 256, 512, kTimedStates, 4, true, false});
    add_shape(shapes, device, "bf16", 2, 256, 512, 0.3);
    for (const int length : {128, 2048}) add_shape(shapes, device, "fp32", 2, 256, length, 0.4);
    if (full)
      for (const int length : {8192, 32768}) add_shape(shapes, device, "fp32", 2, 256, length, 2);
  } else {
    shapes.push_back({device, "fp32", 2, 2048, 2048, kTimedStates, 2, true, false});
    add_shape(shapes, device, "bf16", 8, 2048, 2048, 0.6);
    for (const int length : {512, 4096}) add_shape(shapes, device, "bf16", 2, 2048, length, 0.3);
    add_shape(shapes, device, "bf16", 2, 2048, 2048, 0.3);
    if (full) {
      add_shape(shapes, device, "bf16", 8, 5120, 2048, 1);
      add_shape(shapes, device, "bf16", 1, 5120, 2048, 1);
      add_shape(shapes, device, "bf16", 1, 2048, 16384, 1);
      add_shape(shapes, device, "bf16", 64, 384, 196, 1);
      add_shape(shapes, device, "fp32", 8, 2048, 2048, 1);
      for (const int length : {128, 8192, 32768, 65536})
        add_shape(shapes, device, "bf16", 2, 2048, length, 1);
    }
  }
  shapes.push_back({device, "fp32", 1, 64, 32, kTimedStates, 1, false, true});
  return shapes;
}

}  // namespace scankit::validate
