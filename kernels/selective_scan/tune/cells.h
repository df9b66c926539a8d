// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kernels/selective_scan/cuda/choice.h"

// What the tuner measures: problems ("cells"), the most important first, and the choices that can run each.
namespace scankit::selective_scan {

struct Cell {
  bool backward;
  DType dtype;
  int batch, dim, length, states;
  int tier;  // 0: the six shapes of the goals, 1: the figures beside them, then the grids
};

// Of one shape forward and backward are neighbours: they share their memory.
std::vector<Cell> default_cells();
Common common_of(const Cell& cell);
std::string shape_of(const Cell& cell);  // "bf16 B8 D2048 L2048 N16"
std::string name_of(const Cell& cell);   // "forward bf16 B8 D2048 L2048 N16"
std::string_view name_of(DType dtype);

std::string_view variant_name(bool backward, int variant);  // as variants.def has it
int shipped_variants(bool backward);
const Variant& variant_of(bool backward, int variant);
std::string name_of(bool backward, const Choice& choice);  // "4x4/2 s3 p2"

// Every variant that is made for the cell's states, shipped or candidate, in every block of two warps and
// more that fits (one for more than 16 states, too), cut into as many segments as the length has and the GPU
// may want. Each cut once, though several counts give it.
std::vector<Choice> choices_of(const Cell& cell, const device::DeviceFacts& facts);
// What is chosen without a table.
Choice predicted_choice(const Cell& cell, const device::DeviceFacts& facts);

}  // namespace scankit::selective_scan
