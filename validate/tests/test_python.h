// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

// Tests that need a real torch get its Python from CTest; by hand they are skipped, and say why.
#define SCANKIT_NEEDS_TEST_PYTHON(name)                                   \
  const char* name##_set = std::getenv("SCANKIT_TEST_PYTHON");            \
  if (name##_set == nullptr || ::access(name##_set, X_OK) != 0)           \
    GTEST_SKIP() << "SCANKIT_TEST_PYTHON names no Python that has torch"; \
  const std::string name = name##_set
