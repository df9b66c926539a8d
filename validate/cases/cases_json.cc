// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "validate/cases/cases.h"

namespace scankit::validate {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson fill_json(const Fill& fill) {
  static constexpr const char* kNames[] = {"none", "uniform", "normal", "binade"};
  OrderedJson json{{"kind", kNames[static_cast<int>(fill.kind)]}, {"a", fill.a}, {"b", fill.b}};
  if (fill.negative) json["negative"] = true;
  if (fill.spike_chance > 0) json["spike"] = {fill.spike_chance, fill.spike_value};
  return json;
}

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
  return json.dump();
}

}  // namespace scankit::validate
