// SPDX-License-Identifier: Apache-2.0
#include "shared_type.h"

PYBIND11_MODULE(base_ops, module) {
  pybind11::class_<Base>(module, "Base").def("number", [](const Base& base) { return base.number; });
}
