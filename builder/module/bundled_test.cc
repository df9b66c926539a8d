// SPDX-License-Identifier: Apache-2.0
#include "builder/module/bundled.h"

#include <gtest/gtest.h>

#include <set>

#include "doctor/checks/snapshot_queries.h"

namespace scankit::module {
namespace {

Snapshot usual_machine() {
  Snapshot snapshot;
  Python python{.version = "3.11.7", .implementation = "cpython"};
  python.soabi = "cpython-311-x86_64-linux-gnu";
  snapshot.python = Probed<Python>::of(python);
  Torch torch;
  torch.version = "2.11.0";
  snapshot.torch = Probed<Torch>::of(torch);
  return snapshot;
}

TEST(Shipped, TheDoctorOffersEachModuleAndNoOther) {
  for (const BundledModule& module : bundled_modules()) {
    const auto fixes = checks::module_fixes(usual_machine(), module.name, "other advice");
    ASSERT_EQ(fixes.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<InstallModule>(fixes[0])) << module.name;
  }
  EXPECT_TRUE(
      std::holds_alternative<Advice>(checks::module_fixes(usual_machine(), "flash_attn_2_cuda", "a")[0]));
}

TEST(Shipped, EachIsWholeAndExportsItsOwnName) {
  for (const BundledModule& module : bundled_modules()) {
    EXPECT_TRUE(module.host_module.starts_with("\177ELF")) << module.name;
    EXPECT_NE(module.host_module.find("PyInit_" + module.name + '\0'), std::string_view::npos) << module.name;
    EXPECT_NE(module.device_source.find("__global__"), std::string_view::npos) << module.name;
    std::set<std::string> names;
    for (const toolchain::Unit& unit : module.units) EXPECT_TRUE(names.insert(unit.name).second) << unit.name;
    EXPECT_FALSE(names.empty());
  }
}

TEST(Shipped, AreFoundByName) {
  EXPECT_EQ((*bundled_module(""))->name, "selective_scan_cuda");
  EXPECT_EQ((*bundled_module("causal_conv1d_cuda"))->source_name, "causal_conv1d.cu");
  const auto none = bundled_module("causal_conv1d");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::InvalidArgument);
  EXPECT_NE(english(none.error().message).find("causal_conv1d_cuda, selective_scan_cuda_core"),
            std::string::npos);
}

}  // namespace
}  // namespace scankit::module
