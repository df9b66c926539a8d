// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/cases.h"

#include <algorithm>
#include <cmath>

#include "validate/cases/data.h"
#include "validate/cases/random.h"

// The tables of scan cases and the builder that makes tensors of a row. The tables are about coverage:
// dtypes, lengths around the kernels' tiles, state counts, layouts and every optional argument both ways.
namespace scankit::validate {
namespace {

enum class Delta { Test, Model, Tiny, Huge };                // how long the steps are
enum class Rate { Test, Model, NearZero, Steep, Positive };  // how A is drawn
enum class Lay { Plain, Model, Awkward };                    // where the tensors are in their storage

// One row of a table. Each letter of `options` is one of:
//   D z b(ias) s(oftplus)   the optional argument is given
//   r                       bwd recomputes out_z
//   p                       dz is preallocated by the caller
//   n                       bwd gets no x
//   f                       the call is repeated with other data in the same tensors
//   i                       complex A, and so complex states
//   B C                     that one is constant: (dim, states) instead of one for each step
//   N I M                   one element is NaN, infinity, minus infinity
struct ScanRow {
  Dtype dtype;
  int batch, dim, length, states, groups;
  const char* options;
  Delta delta;
  Rate rate;
  Lay lay;
  bool has(char option) const { return std::string_view(options).find(option) != std::string_view::npos; }
};

// The first three are upstream's own test in every dtype; the others visit lengths around the edges of
// tiles, state counts that fill no register, tiny and odd dims, groups, and every option both ways.
constexpr ScanRow kQuick[] = {
    {kF32, 2, 4, 128, 8, 1, "Dzbsf", Delta::Test, Rate::Test, Lay::Plain},
    {kF16, 2, 4, 256, 8, 2, "Dzbsf", Delta::Test, Rate::Test, Lay::Plain},
    {kBF16, 2, 4, 512, 8, 1, "Dzbsf", Delta::Test, Rate::Test, Lay::Plain},
    {kBF16, 2, 64, 196, 16, 1, "Dzbsrp", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 2, 64, 197, 16, 1, "Dzbsrp", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 1, 48, 1000, 16, 1, "Dzbsrp", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 1, 1, 1, 1, 1, "", Delta::Test, Rate::Test, Lay::Plain},
    {kBF16, 3, 5, 1, 16, 1, "Dzbsp", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 2, 3, 2, 4, 1, "Dz", Delta::Test, Rate::Test, Lay::Awkward},
    {kF32, 1, 7, 3, 2, 1, "zs", Delta::Model, Rate::Test, Lay::Awkward},
    {kBF16, 1, 8, 7, 5, 2, "bs", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 2, 6, 31, 3, 3, "D", Delta::Test, Rate::Test, Lay::Plain},
    {kF16, 1, 16, 32, 16, 1, "s", Delta::Test, Rate::Model, Lay::Plain},
    {kBF16, 2, 9, 33, 16, 1, "Dzsn", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 1, 24, 49, 16, 1, "Db", Delta::Test, Rate::Test, Lay::Awkward},
    {kF32, 2, 100, 63, 1, 1, "Dzbs", Delta::Model, Rate::Test, Lay::Plain},
    {kBF16, 1, 32, 127, 17, 1, "Dbs", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 1, 12, 129, 32, 4, "Dzbsr", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 2, 8, 65, 64, 2, "zbsp", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 1, 2, 40, 256, 1, "Dzbs", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 1, 3, 50, 255, 1, "", Delta::Test, Rate::Test, Lay::Plain},
    {kF32, 1, 4, 2047, 16, 1, "Dzbsn", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 1, 4, 2049, 16, 2, "Dzbsrf", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 1, 2, 4097, 8, 1, "Dzbs", Delta::Model, Rate::Model, Lay::Awkward},
    {kF16, 1, 2, 2048, 4, 1, "z", Delta::Test, Rate::Test, Lay::Plain},
    {kF32, 2, 16, 100, 16, 1, "Dzbs", Delta::Tiny, Rate::Model, Lay::Plain},
    {kF32, 2, 16, 100, 16, 1, "Dz", Delta::Tiny, Rate::Steep, Lay::Plain},
    {kBF16, 2, 16, 100, 16, 1, "bs", Delta::Tiny, Rate::Model, Lay::Plain},
    {kF32, 2, 16, 150, 16, 2, "Dzbs", Delta::Huge, Rate::Model, Lay::Plain},
    {kBF16, 1, 16, 150, 16, 1, "Dzb", Delta::Huge, Rate::Test, Lay::Plain},
    {kF32, 1, 16, 300, 16, 1, "Dzbs", Delta::Model, Rate::NearZero, Lay::Plain},
    {kF32, 1, 16, 90, 16, 1, "Dzbs", Delta::Model, Rate::Steep, Lay::Plain},
    {kF32, 1, 16, 90, 16, 1, "Dzbs", Delta::Model, Rate::Positive, Lay::Plain},
    {kF16, 1, 16, 90, 16, 1, "zs", Delta::Test, Rate::NearZero, Lay::Awkward},
    {kF32, 2, 4, 128, 8, 1, "DzbsBC", Delta::Test, Rate::Test, Lay::Plain},
    {kF32, 2, 5, 65, 3, 1, "DzbspBn", Delta::Model, Rate::Model, Lay::Awkward},
    {kBF16, 1, 24, 97, 16, 1, "zbsrB", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 2, 6, 33, 19, 2, "DsC", Delta::Test, Rate::Test, Lay::Awkward},
    {kBF16, 1, 17, 130, 16, 1, "DzbsBC", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 1, 7, 40, 256, 1, "zbsB", Delta::Test, Rate::Model, Lay::Plain},
    {kF32, 1, 3, 2049, 16, 1, "DzbsfB", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 2, 4, 128, 8, 1, "Dzbsif", Delta::Test, Rate::Test, Lay::Plain},
    {kF16, 2, 4, 256, 8, 2, "Dzbsi", Delta::Test, Rate::Test, Lay::Plain},
    {kBF16, 2, 24, 196, 16, 3, "Dzbsrpi", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 2, 12, 33, 5, 4, "in", Delta::Test, Rate::Test, Lay::Awkward},
    {kF32, 1, 1, 1, 1, 1, "zi", Delta::Test, Rate::Test, Lay::Awkward},
    {kF32, 1, 3, 2049, 16, 1, "Dzbsi", Delta::Model, Rate::Model, Lay::Model},
    {kBF16, 1, 2, 70, 255, 1, "bsiB", Delta::Model, Rate::Model, Lay::Plain},
    {kF32, 2, 20, 100, 16, 1, "DzbsriBC", Delta::Model, Rate::Model, Lay::Model},
    {kF16, 1, 9, 64, 4, 1, "DzbspiB", Delta::Test, Rate::Test, Lay::Awkward},
    {kBF16, 1, 8, 127, 33, 2, "zsiC", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 1, 16, 150, 16, 2, "Dzbsi", Delta::Huge, Rate::Model, Lay::Plain},
    {kF32, 1, 16, 90, 16, 1, "DzbsiC", Delta::Model, Rate::Positive, Lay::Plain},
    {kF32, 1, 16, 300, 16, 1, "DzbsiB", Delta::Tiny, Rate::NearZero, Lay::Plain},
};

// Non-finite inputs, empty tensors, and extents above 65535, the limit of a CUDA grid's y and z axes.
constexpr ScanRow kHostile[] = {
    {kF32, 1, 6, 70, 4, 1, "DzbsN", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 2, 5, 65, 16, 1, "zsI", Delta::Model, Rate::Model, Lay::Awkward},
    {kF32, 1, 8, 33, 3, 2, "DM", Delta::Test, Rate::Test, Lay::Plain},
    {kF16, 1, 20, 130, 16, 1, "DzbsrpN", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 0, 4, 9, 4, 1, "Dzbs", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 2, 0, 9, 4, 1, "D", Delta::Model, Rate::Model, Lay::Plain},
    {kF32, 1, 65537, 2, 1, 1, "Ds", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 65537, 1, 2, 2, 1, "z", Delta::Test, Rate::Test, Lay::Plain},
};
// Lengths at which rounding errors and offsets of 16 bits would show.
constexpr ScanRow kLong[] = {
    {kF32, 1, 2, 65536, 4, 1, "Dzbs", Delta::Model, Rate::Model, Lay::Plain},
    {kBF16, 1, 3, 65535, 8, 1, "Dzbsrp", Delta::Model, Rate::Model, Lay::Model},
    {kF32, 1, 1, 65536, 4, 1, "zbsi", Delta::Model, Rate::Model, Lay::Plain},
    {kF16, 2, 2, 32769, 4, 2, "bsC", Delta::Model, Rate::Model, Lay::Awkward},
};

Fill uniform(double low, double high) { return {FillKind::Uniform, low, high}; }
Fill normal(double mean, double deviation) { return {FillKind::Normal, mean, deviation}; }

// With softplus the raw values are chosen so that softplus(raw) has the wanted size: softplus(-14) = 8e-7,
// and softplus(-7..-2) = 0.001..0.13. Huge has rare spikes of 25 among ordinary steps.
Fill delta_fill(Delta kind, bool softplus) {
  switch (kind) {
    case Delta::Test:
      return uniform(0, 0.5);
    case Delta::Model:
      return softplus ? normal(0, 0.5) : uniform(0.001, 0.1);
    case Delta::Tiny:
      return softplus ? uniform(-16, -12) : Fill{FillKind::Binade, -24, -17};
    case Delta::Huge:
      return softplus ? Fill{FillKind::Uniform, -7, -2, false, 0.01, 25}
                      : Fill{FillKind::Uniform, 0, 0.5, false, 0.01, 25};
  }
  return {};
}

// Models initialize delta_bias so that softplus(bias) is between 0.001 and 0.1.
Fill bias_fill(Delta kind, bool softplus) {
  return softplus && kind == Delta::Model ? uniform(-6, -2)
         : kind == Delta::Tiny            ? uniform(0, 1e-6)
                                          : uniform(0, 0.5);
}

// A is negative in models: states decay. NearZero remembers almost everything, Steep almost nothing, and
// Positive has states that grow.
Fill rate_fill(Rate kind) {
  switch (kind) {
    case Rate::Test:
      return uniform(-0.5, 0);
    case Rate::Model:
      return uniform(-16, -1);
    case Rate::NearZero:
      return {FillKind::Binade, -12, -4, true};
    case Rate::Steep:
      return uniform(-1000, -1);
    case Rate::Positive:
      return uniform(-0.5, 0.05);
  }
  return {};
}

// The imaginary part of complex A, the speed at which a state turns: as in upstream's own test, or up to a
// few half turns in a long step. NearZero turns slowly because its memory is long: the angles of thousands
// of steps add up, and at 10^4 radians the rounding of delta + delta_bias alone puts the plain fp32
// recurrence beyond the bounds.
Fill turn_fill(Rate kind) {
  return kind == Rate::Test ? uniform(-0.5, 0) : kind == Rate::NearZero ? uniform(-2, 2) : uniform(-40, 40);
}

// Makes the tensors of one case. Each gets its own seed from the case's stream, in the order of the calls
// in build(): a change of that order changes the data of all later tensors.
class CaseBuilder {
 public:
  CaseBuilder(const ScanRow& row, std::string id, std::uint64_t seed) : row_(row), stream_(seed) {
    case_.id = std::move(id);
    case_.dtype = row.dtype;
    case_.batch = row.batch;
    case_.dim = row.dim;
    case_.length = row.length;
    case_.states = row.states;
    case_.groups = row.groups;
    case_.softplus = row.has('s');
    case_.recompute_out_z = row.has('r') && row.has('z');
    case_.give_x = !row.has('n');
    case_.refill = row.has('f');
  }

  Case build() {
    const Lay lay = row_.lay;
    const bool model = lay == Lay::Model;
    sequence("u", normal(0, 1), model ? Layout::ChannelMajor : awkward(Layout::Misaligned));
    sequence("delta", delta_fill(row_.delta, row_.has('s')),
             model ? Layout::ChannelMajor : awkward(Layout::LongerRows));
    matrix("A", rate_fill(row_.rate), turn_fill(row_.rate));
    projection("B", awkward(Layout::LongerRows));
    projection("C", awkward(Layout::Misaligned));
    if (row_.has('D')) vector("D", normal(0, 1));
    if (row_.has('z')) sequence("z", normal(0, 1), model ? Layout::HalfOfWider : awkward(Layout::AtStart));
    if (row_.has('b')) vector("delta_bias", bias_fill(row_.delta, row_.has('s')));
    sequence("dout", normal(0, 1), model ? Layout::ChannelMajor : awkward(Layout::LongerRows));
    if (row_.has('z') && row_.has('p'))
      sequence("dz", {}, model ? Layout::HalfOfWider : awkward(Layout::LongerRows));
    if (row_.has('N')) poke("u", NAN);
    if (row_.has('I')) poke("delta", INFINITY);
    if (row_.has('M')) poke("B", -INFINITY);
    return std::move(case_);
  }

 private:
  // The given layout in awkward cases, a contiguous tensor in all others.
  Layout awkward(Layout layout) const { return row_.lay == Lay::Awkward ? layout : Layout::Plain; }

  TensorSpec& add(const char* name, Dtype dtype, std::vector<std::int64_t> shape, const Fill& fill) {
    case_.tensors.push_back({name, dtype, std::move(shape), {}, 0, 0, fill, stream_.next()});
    return case_.tensors.back();
  }
  void sequence(const char* name, const Fill& fill, Layout layout) {
    lay_out(add(name, row_.dtype, {row_.batch, row_.dim, row_.length}, fill), layout);
  }
  // B or C: (batch, groups, states, length), twice as long where complex since real and imaginary parts
  // alternate, or (dim, states) where constant.
  void projection(const char* name, Layout layout) {
    if (row_.has(name[0])) return matrix(name, normal(0, 1), normal(0, 1));
    const std::int64_t steps = std::int64_t{row_.length} * (row_.has('i') ? 2 : 1);
    lay_out(add(name, row_.dtype, {row_.batch, row_.groups, row_.states, steps}, normal(0, 1)), layout);
  }
  void matrix(const char* name, const Fill& fill, const Fill& imaginary) {
    TensorSpec& spec = add(name, row_.has('i') ? Dtype::C64 : kF32, {row_.dim, row_.states}, fill);
    if (row_.has('i')) spec.imaginary = imaginary;
    lay_out_matrix(spec, row_.lay == Lay::Awkward ? MatrixLayout::Transposed : MatrixLayout::Plain);
  }
  void vector(const char* name, const Fill& fill) {
    lay_out_matrix(add(name, kF32, {row_.dim}, fill), MatrixLayout::Plain);
  }

  // Puts the value somewhere in the middle half of a row: there are steps before it, which it must not
  // affect, and steps after it, which it must.
  void poke(std::string_view name, double value) {
    const auto spec = std::find_if(case_.tensors.begin(), case_.tensors.end(),
                                   [&](const TensorSpec& t) { return t.name == name; });
    const auto length = static_cast<std::uint64_t>(spec->shape.back());
    const std::uint64_t row = stream_.next() % (static_cast<std::uint64_t>(spec->count()) / length);
    spec->poked = static_cast<std::int64_t>(row * length + length / 4 + stream_.next() % (length / 2));
    spec->poke = value;
  }

  const ScanRow& row_;
  Stream stream_;
  Case case_;
};

// "q003-bf16-b2-d64-l196-n16-g1-Dzbsrp". Users pass ids to --case, so that they must stay
// unique and readable.
std::string identifier(const char* list, std::size_t index, const ScanRow& row) {
  std::string number = std::to_string(index);
  number.insert(0, number.size() < 3 ? 3 - number.size() : 0, '0');
  std::string id = list + number + '-' + std::string(dtype_name(row.dtype));
  id += "-b" + std::to_string(row.batch) + "-d" + std::to_string(row.dim) + "-l" + std::to_string(row.length);
  id += "-n" + std::to_string(row.states) + "-g" + std::to_string(row.groups);
  return row.options[0] == 0 ? id : id + '-' + row.options;
}

Case make_case(const char* list, std::size_t index, const ScanRow& row, std::uint64_t seed) {
  return CaseBuilder(row, identifier(list, index, row), mix(seed ^ mix(index + 1))).build();
}

// The values that random rows choose from. Repeated values are chosen more often.
constexpr int kScanLengths[] = {1,   2,    3,    4,    5,    7,    8,    15,   16,   31,   32,   33,   49,
                                63,  64,   65,   96,   100,  127,  128,  129,  196,  255,  256,  257,  511,
                                784, 1000, 1024, 1025, 2047, 2048, 2049, 3000, 4096, 4097, 6145, 8192, 16385};
constexpr int kScanStates[] = {1,  2,  3,  4,  5,  7,  8,  12, 16,  16,  16,  16,
                               17, 24, 31, 32, 33, 48, 64, 65, 100, 128, 255, 256};
constexpr int kScanDims[] = {1,  2,  3,  4,  5,  7,  8,   12,  16,  17,  24,
                             31, 32, 48, 64, 65, 96, 100, 128, 192, 256, 384};
constexpr int kScanBatches[] = {1, 1, 2, 2, 3, 4, 5, 8};
constexpr int kScanGroups[] = {1, 1, 1, 2, 3, 4};
constexpr Delta kDeltas[] = {Delta::Test, Delta::Model, Delta::Model, Delta::Model, Delta::Tiny, Delta::Huge};
constexpr Rate kRates[] = {Rate::Test, Rate::Model, Rate::Model, Rate::NearZero, Rate::Steep};
constexpr Lay kLays[] = {Lay::Plain, Lay::Model, Lay::Awkward};
constexpr std::int64_t kMaxElements = 1500000;  // batch * dim * length * states: the reference keeps them all

// One random row. `options` is the storage behind the row's own pointer, and must outlive the row. Every
// draw takes the next number of the stream, so that a new draw changes all later cases of a seed.
ScanRow random_row(Stream& stream, std::string& options) {
  ScanRow row{stream.pick(kRealDtypes),
              stream.pick(kScanBatches),
              stream.pick(kScanDims),
              stream.pick(kScanLengths),
              stream.pick(kScanStates),
              stream.pick(kScanGroups),
              "",
              stream.pick(kDeltas),
              stream.pick(kRates),
              stream.pick(kLays)};
  if (row.length <= 128 && row.delta == Delta::Model && stream.chance(10)) row.rate = Rate::Positive;
  // fp16 ends at 65504, which long memory and long steps together exceed.
  if (row.dtype == kF16 && row.delta == Delta::Huge && row.rate == Rate::NearZero) row.rate = Rate::Model;
  // The number of channels must be a multiple of the groups.
  row.dim = std::max(1, row.dim / row.groups) * row.groups;
  const auto elements = [&] { return std::int64_t{row.batch} * row.dim * row.length * row.states; };
  while (elements() > kMaxElements && row.dim > row.groups)
    row.dim = std::max(1, row.dim / row.groups / 2) * row.groups;
  while (elements() > kMaxElements && row.batch > 1) row.batch /= 2;
  while (elements() > kMaxElements) row.states = (row.states + 1) / 2;
  for (const char option : {'D', 'z', 'b', 's'})
    if (stream.chance(60)) options += option;
  if (stream.chance(30)) options += 'r';
  if (stream.chance(30)) options += 'p';
  if (row.length <= 2048 && stream.chance(15)) options += 'n';
  if (stream.chance(10)) options += 'f';
  if (stream.chance(30)) {
    options += 'i';
    row.states = (row.states + 1) / 2;
  }
  if (stream.chance(25)) options += 'B';
  if (stream.chance(25)) options += 'C';
  // Upstream's module takes the groups from B: a constant one has none.
  if (options.find('B') != std::string::npos) row.groups = 1;
  row.options = options.c_str();
  return row;
}

}  // namespace

std::int64_t TensorSpec::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

const TensorSpec* Case::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

bool Case::complex() const { return find("A")->dtype == Dtype::C64; }
bool Case::finite() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) { return t.poked < 0; });
}
bool Case::constant(std::string_view which) const { return find(which)->shape.size() == 2; }

std::vector<Case> quick_cases(std::uint64_t seed) {
  std::vector<Case> cases;
  for (const ScanRow& row : kQuick) cases.push_back(make_case("q", cases.size(), row, seed));
  return cases;
}

std::vector<Case> hostile_cases(std::uint64_t seed) {
  std::vector<Case> cases;
  for (const ScanRow& row : kHostile) cases.push_back(make_case("h", cases.size(), row, mix(seed + 3)));
  return cases;
}

std::vector<Case> long_cases(std::uint64_t seed) {
  std::vector<Case> cases;
  for (const ScanRow& row : kLong) cases.push_back(make_case("l", cases.size(), row, mix(seed + 4)));
  return cases;
}

Case one_step(std::string id, const StepShape& shape, std::uint64_t seed) {
  const ScanRow row{
      shape.dtype,  shape.batch,   shape.dim,    1,           shape.states,
      shape.groups, shape.options, Delta::Model, Rate::Model, shape.model ? Lay::Model : Lay::Plain};
  return CaseBuilder(row, std::move(id), seed).build();
}

std::vector<Case> full_cases(std::uint64_t seed, int count) {
  std::vector<Case> cases = quick_cases(seed);
  // "full" in ASCII.
  Stream stream(mix(seed ^ 0x66756c6cu));
  for (int i = 0; i < count; ++i) {
    std::string options;
    const ScanRow row = random_row(stream, options);
    cases.push_back(make_case("r", static_cast<std::size_t>(i), row, mix(seed + 1)));
  }
  return cases;
}

}  // namespace scankit::validate
