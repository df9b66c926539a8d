// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pybind11/pybind11.h>

struct __attribute__((visibility("default"))) Base {
  int number = 7;
};
struct __attribute__((visibility("default"))) Derived : Base {};
