// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/built_modules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "doctor/base/text.h"

namespace scankit {
namespace {

TEST(BuiltModules, KnowTheVariantsOfVMamba) {
  const auto row = std::ranges::find(built_modules(), "selective_scan_cuda_oflex", &CompiledModule::module);
  ASSERT_NE(row, built_modules().end());
  EXPECT_EQ(row->project, "MzeroMiko/VMamba");
  EXPECT_EQ(std::ranges::find(built_modules(), "torch", &CompiledModule::module), built_modules().end());
}

// `import NAME` is searched for in sources: each is one name, in one row.
TEST(BuiltModules, AreTopLevelNamesOnce) {
  std::set<std::string> seen;
  for (const CompiledModule& row : built_modules()) {
    EXPECT_TRUE(std::ranges::all_of(row.module, is_identifier_char)) << row.module;
    EXPECT_TRUE(seen.insert(row.module).second) << row.module;
    EXPECT_NE(row.project.find('/'), std::string::npos) << row.project;
  }
}

}  // namespace
}  // namespace scankit
