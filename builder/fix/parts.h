// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "builder/fix/plan.h"

// A plan may hold repairs that have nothing to do with each other. Each such part is a transaction of its
// own: a package that cannot be made to work takes no good module back with it.
namespace scankit {

// Numbers the parts and brings the steps into their order: what stands below every module (torch, the
// loader's path), then the modules, then the packages above them. Together go the steps for one module or
// package, and a package with the module that is installed for its sake. Within a part packages come first,
// since an installer may bring or take what our files stand beside.
void divide_into_parts(std::vector<RepairStep>& steps);

// The parts, each as a plan.
std::vector<FixPlan> parts_of(const FixPlan& plan);

}  // namespace scankit
