// SPDX-License-Identifier: Apache-2.0
#include "shared_type.h"

// As pybind11's manual has a module use the types of another: it imports that one first.
PYBIND11_MODULE(derived_ops, module) {
  pybind11::module_::import("base_ops");
  pybind11::class_<Derived, Base>(module, "Derived").def(pybind11::init<>());
}
