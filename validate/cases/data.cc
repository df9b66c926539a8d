// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/data.h"

#include <cmath>

#include "validate/cases/random.h"

namespace scankit::validate {
namespace {

// harness/tensors.py does the same operations in the same order; a test compares the two bit by bit.
double element(const Fill& fill, std::uint64_t seed, std::uint64_t spikes, std::uint64_t i) {
  if (fill.spike_chance > 0 && unit(spikes, i) < fill.spike_chance) return fill.spike_value;
  const auto part = [&](std::uint64_t k) { return unit(seed, 4 * i + k); };
  switch (fill.kind) {
    case FillKind::Uniform:
      return fill.a + (fill.b - fill.a) * part(0);
    case FillKind::Normal:
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

}  // namespace scankit::validate
