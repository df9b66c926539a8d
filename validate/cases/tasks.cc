// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/tasks.h"

#include <algorithm>

namespace scankit::validate {
namespace {

// Small enough to be done in another way too, which shows the same whatever the shape.
constexpr std::int64_t kOtherWays = 100000;  // states over all steps
bool in_other_ways(const Case& c) {
  const std::int64_t states = std::int64_t{c.batch} * c.dim * c.length * c.states;
  return c.width == 0 && !c.stateful && states > 0 && states <= kOtherWays;
}

// Between bands: each allocation is one of the driver's own, so small ones only.
constexpr std::int64_t kBetweenBands = 20000;  // states over all steps
bool between_bands(const Case& c) {
  const std::int64_t states = std::int64_t{c.batch} * c.dim * c.length * std::max(c.states, 1);
  return states > 0 && states <= kBetweenBands;
}

}  // namespace

std::vector<Task> banded_tasks_of(const ValidateRequest& request) {
  std::vector<Task> tasks;
  for (const std::string& device : request.devices)
    for (const Case& c : request.cases)
      if (!on_cpu(device) && between_bands(c)) tasks.push_back({&c, device + "+bands"});
  return tasks;
}

std::vector<Task> tasks_of(const ValidateRequest& request) {
  std::vector<Task> tasks;
  for (const Case& c : request.cases) {
    for (const std::string& device : request.devices) {
      tasks.push_back({&c, device});
      if (!on_cpu(device) && in_other_ways(c))
        for (const char* way : {"+stream", "+graph"}) tasks.push_back({&c, device + way});
      if (!request.against.empty() && !c.stateful) tasks.push_back({&c, device + "@against"});
    }
  }
  return tasks;
}

}  // namespace scankit::validate
