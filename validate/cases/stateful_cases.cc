// SPDX-License-Identifier: Apache-2.0
// Cases of fwd_stateful, bwd_stateful and state_update: rows of the plain list with states, with packed
// sequences, and scans of one step.
#include <algorithm>

#include "validate/cases/cases.h"
#include "validate/cases/data.h"
#include "validate/cases/random.h"

namespace scankit::validate {
namespace {

// A row of the quick list by its index, and what is added to it: h (initial state), l (gradient of the
// last state), k (packed sequences). Packed sequences need a row with batch 1.
struct StatefulRow {
  std::size_t index;
  std::string_view options;
};

constexpr StatefulRow kQuickStateful[] = {
    {0, "hl"},  {4, "h"},  {5, "hlk"}, {7, "hl"},   {10, "lk"}, {13, "hl"},  {17, "hk"}, {20, "l"},
    {22, "hl"}, {32, "k"}, {35, "hl"}, {36, "hlk"}, {44, "hl"}, {46, "hlk"}, {47, "hk"}, {50, "hlk"}};

// A state has the dtype of A: fp32, or pairs of fp32 where A is complex.
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

// cu_seqlens: the starts of two to six sequences and the end, sorted. Equal neighbours are empty
// sequences, which the functions must accept.
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

// The case with states; its id is that of the plain case with another list and "+OPTIONS".
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

// batch, dim, states, groups: the shapes of decoding, and extents that fill no vector register.
constexpr StepShape kSteps[] = {
    {Dtype::F32, 2, 64, 16, 1, "Dzbs", true}, {Dtype::BF16, 3, 48, 16, 1, "Dzbs", true},
    {Dtype::F16, 1, 33, 19, 3, "zs", false},  {Dtype::BF16, 2, 7, 1, 1, "", true},
    {Dtype::F16, 5, 16, 64, 2, "Dbs", true},  {Dtype::F32, 1, 5, 256, 1, "Db", false},
};

// A case of state_update. Models keep the state in their own dtype, so that every second case of 16 bits
// has a state of 16 bits ("+short").
Case step_case(const char* list, std::size_t number, const StepShape& shape, Stream& stream) {
  const bool short_state = number % 2 == 1 && shape.dtype != Dtype::F32;
  std::string id = list + std::to_string(number) + "-" + std::string(dtype_name(shape.dtype)) + "-b" +
                   std::to_string(shape.batch) + "-d" + std::to_string(shape.dim) + "-n" +
                   std::to_string(shape.states) + "-g" + std::to_string(shape.groups) + "-" + shape.options +
                   (short_state ? "+short" : "+step");
  Case c = one_step(std::move(id), shape, stream.next());
  c.stateful = c.step = true;
  add_state(c, "initial_state", c.batch, stream);
  if (short_state) c.tensors.back().dtype = shape.dtype;
  return c;
}

// `options` is the storage behind the shape's own pointer.
StepShape random_step(Stream& stream, std::string& options) {
  constexpr int kBatches[] = {1, 2, 3, 8}, kGroups[] = {1, 1, 2}, kPerGroup[] = {1, 7, 16, 33, 100},
                kStates[] = {1, 3, 8, 16, 17, 64, 255};
  for (const char option : {'D', 'z', 'b', 's'})
    if (stream.chance(60)) options += option;
  StepShape shape{stream.pick(kRealDtypes), stream.pick(kBatches), 0,
                  stream.pick(kStates),     stream.pick(kGroups),  options.c_str(),
                  stream.chance(50)};
  shape.dim = shape.groups * stream.pick(kPerGroup);
  return shape;
}

}  // namespace

std::vector<Case> stateful_cases(std::uint64_t seed, int random) {
  // A stream of its own ("stat" in ASCII), so that new plain cases do not change these.
  Stream stream(mix(seed ^ 0x73746174u));
  const std::vector<Case> plain = quick_cases(seed);
  std::vector<Case> cases;
  for (const StatefulRow& row : kQuickStateful)
    cases.push_back(with_states(plain[row.index], "s", cases.size(), row.options, stream));
  for (const StepShape& shape : kSteps)
    cases.push_back(step_case("u", static_cast<std::size_t>(&shape - kSteps), shape, stream));
  for (int i = 0; i < random / 2; ++i) {
    std::string options;
    const StepShape shape = random_step(stream, options);
    cases.push_back(step_case("w", static_cast<std::size_t>(i), shape, stream));
  }
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
