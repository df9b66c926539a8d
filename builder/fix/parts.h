// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "builder/fix/plan.h"

// A plan may have repairs that have nothing to do with each other. Each such part is a transaction of its
// own, so that a package that cannot be made to work does not take a good module back with it.
namespace scankit {

// Numbers the parts and puts the steps in order: first what is below every module (torch, the loader's path),
// then the modules, then the packages above them. Steps for the same module or package belong together, and
// so do a package and the module that is installed for its sake. Within a part packages come first, since an
// installer may bring or remove files that ours are put next to.
void divide_into_parts(std::vector<RepairStep>& steps);

// Each part as a plan of its own, with the place of the whole. The steps must have been divided.
std::vector<FixPlan> parts_of(const FixPlan& plan);

}  // namespace scankit
