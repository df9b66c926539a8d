// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/bank_use.h"

namespace scankit::validate {
namespace {

struct BankRow {
  std::string_view symbol;
  long requests, least, needed;
};
// The empty one is for a build that could not predict.
constexpr BankRow kRows[] = {
#include "bank_conflicts.inc"
    {"", 0, 0, 0}};

}  // namespace

std::optional<double> predicted_bank_conflicts(std::string_view symbol) {
  for (const BankRow& row : kRows)
    if (row.symbol == symbol && row.least > 0)
      return static_cast<double>(row.needed) / static_cast<double>(row.least) - 1;
  return std::nullopt;
}

}  // namespace scankit::validate
