// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "envspec/cli/commands.h"
#include "envspec/diff/diff.h"

namespace scankit {

int run_env_diff(const EnvDiffOptions& options) {
  auto left = read_side(options.left);
  auto right = left ? read_side(options.right) : left;
  if (!right) {
    complain(right.error());
    return kExitUsage;
  }
  if (left->kind == "lock") put_files(*right, options.cache_dir);
  if (right->kind == "lock") put_files(*left, options.cache_dir);
  auto all = differences(*left, *right);
  if (options.redact) redact(own_names(), *left, *right, all);
  if (options.json)
    std::cout << diff_json(*left, *right, all);
  else
    std::cout << diff_text(*left, *right, all);
  const bool differ = std::ranges::any_of(all, [](const Difference& one) { return one.why_unknown.empty(); });
  if (differ) return kExitDrift;
  return all.empty() ? kExitClean : kExitInconclusive;
}

}  // namespace scankit
