// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "builder/fix/plan.h"
#include "builder/installer/installer.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

// The names that a step is about. Two steps with a common name depend on each other.
std::vector<std::string> names_in_step(const RepairStep& step) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) names.push_back(required_name(name));
  };
  add(step.about);
  add(step.needed_by);
  if (const auto* ours = std::get_if<InstallBundled>(&step.what)) add(ours->module);
  if (const auto* away = std::get_if<MoveAway>(&step.what)) add(away->module);
  if (const auto* packages = std::get_if<ChangePackages>(&step.what))
    for (const std::string& requirement : packages->change.requirements) add(requirement);
  return names;
}

bool share_a_name(const RepairStep& one, const RepairStep& other) {
  const auto names = names_in_step(other);
  return std::ranges::any_of(names_in_step(one), [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

// Sets of steps, each named by its first (a union-find without ranks: plans are short).
class Sets {
 public:
  explicit Sets(std::size_t count) : first_(count) { std::iota(first_.begin(), first_.end(), 0u); }
  unsigned of(std::size_t step) const {
    while (first_[step] != step) step = first_[step];
    return static_cast<unsigned>(step);
  }
  void join(std::size_t one, std::size_t other) {
    const unsigned low = std::min(of(one), of(other));
    first_[of(one)] = first_[of(other)] = low;
  }

 private:
  std::vector<unsigned> first_;
};

// In the order of execution.
enum class Level { BelowAll, Modules, Packages };

Level level_of(const RepairStep& step) {
  const auto* packages = std::get_if<ChangePackages>(&step.what);
  if (std::holds_alternative<SetVariable>(step.what) || step.about == "torch" || step.about == "python")
    return Level::BelowAll;
  if (packages == nullptr) return Level::Modules;
  const auto& wanted = packages->change.requirements;
  const bool torch = std::ranges::any_of(
      wanted, [](const std::string& requirement) { return required_name(requirement) == "torch"; });
  return torch ? Level::BelowAll : Level::Packages;
}

}  // namespace

void divide_into_parts(std::vector<RepairStep>& steps) {
  Sets sets(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (share_a_name(steps[i], steps[j])) sets.join(i, j);
  // One step below everything takes its whole set down there; otherwise a package takes its set up.
  const auto level_of_set = [&](unsigned set) {
    Level highest = Level::Modules;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (sets.of(i) != set) continue;
      if (level_of(steps[i]) == Level::BelowAll) return Level::BelowAll;
      highest = std::max(highest, level_of(steps[i]));
    }
    return highest;
  };
  std::vector<unsigned> order;
  for (unsigned i = 0; i < steps.size(); ++i)
    if (sets.of(i) == i) order.push_back(i);
  std::ranges::stable_sort(order, {}, level_of_set);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i].part = static_cast<unsigned>(std::ranges::find(order, sets.of(i)) - order.begin());
  std::ranges::stable_sort(steps, {}, [](const RepairStep& step) {
    return std::pair(step.part, std::holds_alternative<ChangePackages>(step.what) ? 0 : 1);
  });
}

std::vector<FixPlan> parts_of(const FixPlan& plan) {
  std::vector<FixPlan> parts;
  for (const RepairStep& step : plan.steps) {
    if (parts.empty() || parts.back().steps.back().part != step.part) {
      parts.emplace_back();
      parts.back().kind = plan.kind;
      parts.back().place = plan.place;
    }
    parts.back().steps.push_back(step);
  }
  return parts;
}

}  // namespace scankit
