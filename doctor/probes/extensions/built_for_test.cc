// SPDX-License-Identifier: Apache-2.0
// Files of a few lines, made by the real compiler, against the symbol index of the real releases.
#include <algorithm>

#include "doctor/elf/library_test.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/target/target.h"

namespace scankit::probes {
namespace {

using test::Workshop;

constexpr const char* kOldStrings = "_ZN3c105ErrorC2ENS_14SourceLocationESs";
constexpr const char* kNewStrings =
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char* kSetDevice21to22 = "_ZN3c104cuda9SetDeviceEi";
constexpr const char* kSetDevice23to27 = "_ZN3c104cuda9SetDeviceEa";
constexpr const char* kWrapTo25 = "_Z16THPVariable_WrapN2at10TensorBaseE";

std::string source_needing(const std::vector<std::string>& names) {
  std::string source = "int PyInit_mod(void) { return 0", declared;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string alias = "f" + std::to_string(i);
    declared += "int " + alias + "(void) __asm__(\"" + names[i] + "\");\n";
    source += " + " + alias + "()";
  }
  return declared + source + "; }\n";
}

class BuiltForProbe : public testing::Test {
 protected:
  Extension examine(const std::string& name, const std::vector<std::string>& names) {
    return inspect_extension(*make_real_host(), shop_.shared(name, source_needing(names)));
  }
  Workshop shop_;
};

TEST_F(BuiltForProbe, EveryInspectedFileIsDated) {
  const Extension old = examine("mod.cpython-311-x86_64-linux-gnu.so", {kOldStrings, kSetDevice21to22});
  EXPECT_EQ(old.built_for.file, old.path);
  EXPECT_EQ(old.built_for.torch_min, "2.1");
  EXPECT_EQ(old.built_for.torch_max, "2.2");
  EXPECT_EQ(old.built_for.string_abi, "old");
  EXPECT_EQ(old.built_for.python_tag, "cpython-311-x86_64-linux-gnu");
  EXPECT_FALSE(old.built_for.evidence.empty());
}

// As conda's builds were long before the index's.
TEST_F(BuiltForProbe, NewStringsWithTheNamesOfAnOldRelease) {
  const Extension conda = examine("mod.so", {kNewStrings, kSetDevice21to22});
  EXPECT_EQ(conda.string_abi, "new");
  EXPECT_EQ(conda.built_for.torch_min, "2.1");
  EXPECT_EQ(conda.built_for.torch_max, "2.2");
}

TEST_F(BuiltForProbe, AFileWithoutTorchSaysSo) {
  const Extension plain = examine("mod.so", {"printf"});
  EXPECT_FALSE(plain.built_for.dated);
  EXPECT_EQ(english(plain.built_for.why_not_narrower), "the file uses no torch symbol");
}

TEST_F(BuiltForProbe, ADistributionIsDatedByAllItsLibraries) {
  Extension copy = examine("site/pkg/mod.so", {kSetDevice23to27});
  copy.selected = true;
  copy.distribution = "pkg";
  shop_.shared("site/pkg/libhelper.so", source_needing({kWrapTo25}));
  shop_.write("site/pkg-1.dist-info/RECORD", "pkg/mod.so,,\npkg/libhelper.so,,\npkg/gone.so,,\n");
  const std::vector<Distribution> installed = {
      {.name = "pkg", .version = "1", .path = shop_.path("site/pkg-1.dist-info")}};
  const auto together = date_distributions(*make_real_host(), installed, {copy});
  ASSERT_EQ(together.size(), 1u);
  EXPECT_EQ(together[0].file, "pkg");
  EXPECT_EQ(together[0].together, 2u);
  EXPECT_EQ(together[0].torch_min, "2.3");
  EXPECT_EQ(together[0].torch_max, "2.5");
  copy.selected = false;  // a leftover says nothing of what is installed now
  EXPECT_TRUE(date_distributions(*make_real_host(), installed, {copy}).empty());
}

TEST_F(BuiltForProbe, AFolderIsOneMoreAnswer) {
  shop_.shared("folder/mod.so", source_needing({kSetDevice23to27}));
  shop_.shared("folder/libhelper.so", "int f0(void) __asm__(\"" + std::string(kWrapTo25) +
                                          "\"); int helper(void) { return f0(); }\n");
  auto named = open_named_files(make_real_host(), {shop_.path("folder")});
  ASSERT_TRUE(named) << english(named.error().message);
  Snapshot snapshot;
  Python python;
  python.extension_suffixes = {".so"};
  snapshot.python = Probed<Python>::of(std::move(python));
  snapshot.torch = Probed<Torch>::absent("no torch");
  probe_named_files(*named, snapshot);
  // torch.ops.load_library would take the helper: it is examined like a module.
  ASSERT_EQ(snapshot.extensions.value.size(), 2u);
  const auto mod = std::ranges::find(snapshot.extensions.value, "mod", &Extension::module);
  ASSERT_NE(mod, snapshot.extensions.value.end());
  EXPECT_EQ(mod->built_for.torch_max, "2.7");
  ASSERT_EQ(snapshot.built_for.size(), 1u);
  EXPECT_EQ(snapshot.built_for[0].file, shop_.path("folder"));
  EXPECT_EQ(snapshot.built_for[0].together, 2u);
  EXPECT_EQ(snapshot.built_for[0].torch_min, "2.3");
  EXPECT_EQ(snapshot.built_for[0].torch_max, "2.5");
}

}  // namespace
}  // namespace scankit::probes
