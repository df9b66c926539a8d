// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "validate/cases/cases.h"
#include "validate/cases/data.h"
#include "validate/cases/random.h"

// The cases of causal_conv1d_cuda, and which cases each module gets.
namespace scankit::validate {
namespace {

// One row. Letters of `options`: b(ias), s(ilu), l (channels last), q (several sequences), i(nitial
// states), e (final states), f (repeated with other data). All rows are inside the contract of
// causal_conv1d's own build: it takes sequences and states only with channels last, and then only channels
// in multiples of 8.
struct ConvRow {
  Dtype dtype, weight;
  int batch, dim, length, width;
  const char* options;
  bool has(char option) const { return std::string_view(options).find(option) != std::string_view::npos; }
};

constexpr ConvRow kQuickConv[] = {
    {kF32, kF32, 2, 64, 128, 4, "bsf"},  {kF16, kF32, 2, 64, 151, 4, "bs"},
    {kBF16, kF32, 2, 64, 372, 4, "bsf"}, {kF32, kF32, 2, 64, 129, 4, "bslf"},
    {kF16, kF16, 2, 64, 130, 3, "bsl"},  {kBF16, kBF16, 2, 96, 200, 2, "bslf"},
    {kF32, kF32, 1, 1, 1, 2, ""},        {kF32, kF16, 3, 5, 2, 3, "b"},
    {kBF16, kF32, 1, 7, 3, 4, "s"},      {kF32, kBF16, 2, 17, 1025, 4, "bs"},
    {kF16, kF32, 1, 3, 2049, 2, "bs"},   {kF32, kF32, 2, 8, 1, 4, "bslie"},
    {kF32, kF32, 2, 8, 2, 4, "lie"},     {kBF16, kF32, 2, 24, 3, 4, "bslie"},
    {kF16, kF32, 1, 16, 64, 3, "slief"}, {kF32, kF32, 2, 40, 1100, 4, "bslie"},
    {kF32, kF32, 2, 16, 100, 4, "bslq"}, {kBF16, kF32, 1, 64, 300, 4, "bslq"},
    {kF16, kBF16, 2, 8, 65, 2, "lq"},    {kBF16, kF32, 1, 64, 2048, 4, "bsl"},
};

class ConvCaseBuilder {
 public:
  ConvCaseBuilder(const ConvRow& row, std::string id, std::uint64_t seed) : row_(row), stream_(seed) {
    case_.id = std::move(id);
    case_.dtype = row.dtype;
    case_.batch = row.batch;
    case_.dim = row.dim;
    case_.length = row.length;
    case_.width = row.width;
    case_.silu = row.has('s');
    case_.sequence = row.has('q') ? 7 : 0;
    case_.refill = row.has('f');
  }

  Case build() {
    const Fill data{FillKind::Normal, 0, 1}, none;
    signal("x", row_.length, data);
    matrix("weight", {row_.dim, row_.width}, data);
    if (row_.has('b')) matrix("bias", {row_.dim}, data);
    signal("dout", row_.length, data);
    if (row_.has('i')) signal("initial", row_.width - 1, data), signal("dinitial", row_.width - 1, none);
    if (row_.has('e')) signal("dfinal", row_.width - 1, data), signal("final", row_.width - 1, none);
    signal("out", row_.length, none);
    signal("dx", row_.length, none);
    return std::move(case_);
  }

 private:
  TensorSpec& add(const char* name, Dtype dtype, std::vector<std::int64_t> shape, const Fill& fill) {
    case_.tensors.push_back({name, dtype, std::move(shape), {}, 0, 0, fill, stream_.next(), {}});
    return case_.tensors.back();
  }
  // (batch, dim, steps), either with the steps adjacent and gaps between the rows, or with
  // the channels adjacent.
  void signal(const char* name, std::int64_t steps, const Fill& fill) {
    TensorSpec& spec = add(name, row_.dtype, {row_.batch, row_.dim, steps}, fill);
    if (!row_.has('l')) return lay_out(spec, Layout::LongerRows);
    spec.strides = {row_.dim * steps, 1, row_.dim};
    spec.offset = kGuard;
    spec.storage = spec.count() + 2 * kGuard;
  }
  void matrix(const char* name, std::vector<std::int64_t> shape, const Fill& fill) {
    lay_out_matrix(add(name, row_.weight, std::move(shape), fill), MatrixLayout::Plain);
  }

  const ConvRow& row_;
  Stream stream_;
  Case case_;
};

// "c000-fp32-wfp32-b2-d64-l128-k4-bsf".
std::string conv_identifier(const char* list, std::size_t index, const ConvRow& row) {
  std::string number = std::to_string(index);
  number.insert(0, number.size() < 3 ? 3 - number.size() : 0, '0');
  std::string id =
      list + number + '-' + std::string(dtype_name(row.dtype)) + "-w" + std::string(dtype_name(row.weight));
  id += "-b" + std::to_string(row.batch) + "-d" + std::to_string(row.dim) + "-l" + std::to_string(row.length);
  id += "-k" + std::to_string(row.width);
  return row.options[0] == 0 ? id : id + '-' + row.options;
}

Case make_conv_case(const char* list, std::size_t index, const ConvRow& row, std::uint64_t seed) {
  return ConvCaseBuilder(row, conv_identifier(list, index, row), mix(seed ^ mix(index + 1))).build();
}

constexpr int kConvLengths[] = {1,   2,   3,   4,   7,   8,   31,   32,   33,   63,   64,   65,   127, 128,
                                129, 255, 256, 257, 512, 784, 1023, 1024, 1025, 2047, 2048, 2049, 4096};
constexpr int kConvDims[] = {1, 2, 3, 8, 16, 17, 24, 40, 64, 65, 128, 264};
constexpr int kConvBatches[] = {1, 1, 2, 3, 4};
constexpr int kWidths[] = {2, 3, 4, 4};

// `options` is the storage behind the row's own pointer.
ConvRow random_conv_row(Stream& stream, std::string& options) {
  ConvRow row{stream.pick(kRealDtypes),
              stream.pick(kRealDtypes),
              stream.pick(kConvBatches),
              stream.pick(kConvDims),
              stream.pick(kConvLengths),
              stream.pick(kWidths),
              ""};
  for (const char option : {'b', 's'})
    if (stream.chance(60)) options += option;
  if (stream.chance(50)) {
    options += 'l';
    row.dim = (row.dim + 7) / 8 * 8;
    if (stream.chance(30)) {
      options += 'q';
    } else if (stream.chance(60)) {
      options += "ie";
    }
  }
  if (stream.chance(10)) options += 'f';
  row.options = options.c_str();
  return row;
}

}  // namespace

std::vector<Case> conv_cases(std::uint64_t seed, int random) {
  std::vector<Case> cases;
  for (const ConvRow& row : kQuickConv) cases.push_back(make_conv_case("c", cases.size(), row, seed));
  Stream stream(mix(seed + 1));
  for (int i = 0; i < random; ++i) {
    std::string options;
    const ConvRow row = random_conv_row(stream, options);
    cases.push_back(make_conv_case("v", static_cast<std::size_t>(i), row, stream.next()));
  }
  return cases;
}

const std::vector<std::string>& validated_modules() {
  static const std::vector<std::string> names = {"selective_scan_cuda", "selective_scan_cuda_core",
                                                 "selective_scan_cuda_oflex", "causal_conv1d_cuda"};
  return names;
}

std::vector<Case> cases_of(const std::string& module, std::uint64_t seed, bool full) {
  std::string name = module.substr(module.rfind('/') + 1);
  const bool file = module.find('/') != std::string::npos || name.ends_with(".so") || name.ends_with(".py");
  name = file ? name.substr(0, name.find('.')) : name.substr(name.rfind('.') + 1);
  if (name == "causal_conv1d_cuda") return conv_cases(seed, full ? 300 : 0);
  auto cases = full ? full_cases(seed) : quick_cases(seed);
  for (Case& c : hostile_cases(seed)) cases.push_back(std::move(c));
  if (full)
    for (Case& c : long_cases(seed)) cases.push_back(std::move(c));
  if (name == "selective_scan_cuda_core" || name == "selective_scan_cuda_oflex") {
    std::erase_if(cases, [](const Case& c) {
      return c.find("z") != nullptr || c.complex() || c.constant("B") || c.constant("C");
    });
  } else {
    for (Case& c : stateful_cases(seed, full ? 100 : 0)) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace scankit::validate
