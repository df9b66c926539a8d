// SPDX-License-Identifier: Apache-2.0
// Cases of the functions beside fwd and bwd: those of the plain list with states, and as packed sequences.
#include <algorithm>

#include "validate/cases.h"
#include "validate/layout.h"
#include "validate/random.h"

namespace scankit::validate {
namespace {

// Which of the quick list, and with what: h(initial state) l(gradient of the last state) k(packed sequences).
struct Row {
  std::size_t index;
  std::string_view options;
};

constexpr Row kQuick[] = {{0, "hl"},  {4, "h"},    {5, "hlk"}, {7, "hl"},  {10, "lk"}, {13, "hl"},
                          {17, "hk"}, {20, "l"},   {22, "hl"}, {32, "k"},  {35, "hl"}, {36, "hlk"},
                          {44, "hl"}, {46, "hlk"}, {47, "hk"}, {50, "hlk"}};

void add_state(Case& c, const char* name, int sequences, Stream& stream) {
  TensorSpec spec{name,          Dtype::F32, {sequences, c.dim, c.states}, {}, 0, 0, {FillKind::Normal, 0, 1},
                  stream.next(), {}};
  if (c.complex()) {
    spec.dtype = Dtype::C64;
    spec.imaginary = spec.fill;
  }
  lay_out(spec, stream.chance(50) ? Layout::LongerRows : Layout::Plain);
  c.tensors.push_back(std::move(spec));
}

// Where two to six sequences begin, and the end; some are empty.
std::vector<int> draw_bounds(int length, Stream& stream) {
  std::vector<int> bounds{0, length};
  constexpr int kCounts[] = {2, 3, 4, 6};
  for (int more = stream.pick(kCounts); more > 1; --more)
    bounds.push_back(bounds.size() > 2 && stream.chance(30)
                         ? bounds.back()
                         : static_cast<int>(stream.next() % (static_cast<unsigned>(length) + 1)));
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

Case with_states(Case c, const char* list, std::size_t number, std::string_view options, Stream& stream) {
  const auto has = [&](char option) { return options.find(option) != std::string_view::npos; };
  std::string counted = std::to_string(number);
  counted.insert(0, counted.size() < 3 ? 3 - counted.size() : 0, '0');
  c.id = list + counted + c.id.substr(c.id.find('-')) + "+" + std::string(options);
  c.stateful = true;
  if (has('k')) c.cu_seqlens = draw_bounds(c.length, stream);
  const int sequences = has('k') ? static_cast<int>(c.cu_seqlens.size()) - 1 : c.batch;
  if (has('h')) add_state(c, "initial_state", sequences, stream);
  if (has('l')) add_state(c, "dlast_state", sequences, stream);
  return c;
}

}  // namespace

std::vector<Case> stateful_cases(std::uint64_t seed, int random) {
  Stream stream(mix(seed ^ 0x73746174u));
  const std::vector<Case> plain = quick_cases(seed);
  std::vector<Case> cases;
  for (const Row& row : kQuick)
    cases.push_back(with_states(plain[row.index], "s", cases.size(), row.options, stream));
  std::vector<Case> more = full_cases(mix(seed + 2), random);
  more.erase(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(plain.size()));
  for (Case& c : more) {
    std::string options;
    for (const char option : {'h', 'l'})
      if (stream.chance(70)) options += option;
    if (c.batch == 1 || options.empty()) options += c.batch == 1 ? "k" : "h";
    cases.push_back(with_states(std::move(c), "t", cases.size(), options, stream));
  }
  return cases;
}

}  // namespace scankit::validate
