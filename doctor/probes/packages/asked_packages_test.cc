// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/elf/test_library.h"
#include "doctor/probes/packages/requirements.h"

namespace scankit {
namespace {

std::vector<std::string> paths_of(const std::string& site, const std::vector<std::string>& asked,
                                  const std::vector<Extension>& compiled = {}) {
  Snapshot snapshot;
  snapshot.python = Probed<Python>::of({});
  snapshot.python.value.sys_path = {{site, "site", true}};
  snapshot.python.value.extension_suffixes = {".abi3.so"};
  snapshot.modules_asked = asked;
  snapshot.extensions = Probed<std::vector<Extension>>::of(compiled);
  std::vector<std::string> paths;
  for (const AskedPackage& package : find_asked_packages(*make_real_host(), snapshot))
    paths.push_back(package.name + " " + package.path.substr(site.size()));
  return paths;
}

TEST(AskedPackages, ArePackagesAndFilesOfPython) {
  test::Workshop shop;
  shop.write("site/pack/__init__.py", "");
  shop.write("site/pack/inner/__init__.py", "");
  shop.write("site/pack/tool.py", "");
  shop.write("site/one.py", "");
  shop.write("site/left/over.txt", "");  // what an incomplete uninstall leaves
  EXPECT_EQ(
      paths_of(shop.path("site"), {"pack", "pack.inner", "pack.tool", "one", "left", "gone", "pack.gone"}),
      (std::vector<std::string>{"pack /pack", "pack.inner /pack/inner", "pack.tool /pack/tool.py",
                                "one /one.py"}));
}

TEST(AskedPackages, ANameOfWhichImportTakesACompiledFileIsNone) {
  test::Workshop shop;
  shop.write("site/pack/__init__.py", "");
  Extension copy;
  copy.module = "pack";
  copy.selected = true;
  EXPECT_TRUE(paths_of(shop.path("site"), {"pack"}, {copy}).empty());
}

}  // namespace
}  // namespace scankit
