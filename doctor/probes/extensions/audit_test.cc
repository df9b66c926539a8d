// SPDX-License-Identifier: Apache-2.0
// An interpreter and packages of a few lines each, made by the real compiler when the test runs.
#include <filesystem>

#include "doctor/elf/library_test.h"
#include "doctor/probes/extensions/extensions.h"

namespace scankit::probes {
namespace {

using test::Workshop;

class AuditProbe : public testing::Test {
 protected:
  AuditProbe() {
    Python python;
    python.executable = shop_.build(
        "python", "int PyLong_FromLong(long x) { return (int)x; }\nint main(void) { return 0; }\n",
        {"-rdynamic"});
    python.soabi = "cpython-311-x86_64-linux-gnu";
    python.extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".abi3.so", ".so"};
    python.sys_path = {{shop_.path("stdlib"), "stdlib", true}, {shop_.path("site"), "site", true}};
    snapshot_.python = Probed<Python>::of(std::move(python));
    snapshot_.torch = Probed<Torch>::absent("no torch");
    snapshot_.distributions = Probed<std::vector<Distribution>>::of({});
    shop_.write("site/keep", "");
  }

  static std::string module(const std::string& name, const std::string& more = "0") {
    return "int PyLong_FromLong(long); int other(void); int PyInit_" + name +
           "(void) { return PyLong_FromLong(1) + " + more + "; }\n";
  }
  void distribution(const std::string& name, const std::string& record) {
    shop_.write("site/" + name + "-1.dist-info/RECORD", record);
    snapshot_.distributions.value.push_back({.name = name, .version = "1"});
    snapshot_.distributions.value.back().path = shop_.path("site/" + name + "-1.dist-info");
  }
  std::vector<AuditedFile> audit() {
    const auto host = make_real_host();
    const auto probed = probe_audit(*host, snapshot_, AuditScope::All, {});
    EXPECT_TRUE(probed.present()) << probed.note;
    libraries_ = probed.value.libraries;
    return probed.value.files;
  }
  AuditRow only_row() {
    const auto files = audit();
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? AuditRow() : judge(files.front(), "x86_64", false);
  }

  Workshop shop_;
  Snapshot snapshot_;
  unsigned libraries_ = 0;
};

TEST_F(AuditProbe, WithoutAPythonNothingIsKnown) {
  snapshot_.python = Probed<Python>::failed("none");
  EXPECT_EQ(probe_audit(*make_real_host(), snapshot_, AuditScope::All, {}).state, ProbeState::Failed);
}

TEST_F(AuditProbe, AModuleWhoseNamesAreThereLoads) {
  shop_.shared("site/pack/mod.abi3.so", module("mod"));
  distribution("pack", "pack/mod.abi3.so,sha256=x,1\n");
  const auto files = audit();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].distribution, "pack");
  EXPECT_EQ(judge(files[0], "x86_64", false).verdict, AuditVerdict::Loads);
}

TEST_F(AuditProbe, LibrariesAndTheStandardLibraryAreNoPackagesExtensions) {
  shop_.shared("site/pack/libhelper.so", "int other(void) { return 1; }\n");
  shop_.shared("site/pack/plain.so", "int other(void) { return 1; }\n");  // no PyInit
  shop_.shared("stdlib/mod.abi3.so", module("mod"));
  EXPECT_TRUE(audit().empty());
  EXPECT_EQ(libraries_, 2u);
}

// torch.ops.load_library takes them by their path: libtorchaudio.so.
TEST_F(AuditProbe, ALibraryThatMakesTorchOperatorsIsAnExtension) {
  shop_.shared("site/pack/libops.so",
               "void gone(void) __asm__(\"_ZN5torch7LibraryC1Ev\"); void run(void) { gone(); }\n");
  const auto files = audit();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(judge(files[0], "x86_64", false).verdict, AuditVerdict::Fails);
}

TEST_F(AuditProbe, OnlyThePackagesThatWereNamed) {
  shop_.shared("site/pack/mod.abi3.so", module("mod"));
  shop_.shared("site/package/mod.abi3.so", module("mod"));
  snapshot_.packages_asked = {{"pack", shop_.path("site/pack")}};
  const auto probed = probe_audit(*make_real_host(), snapshot_, AuditScope::Packages, {});
  ASSERT_EQ(probed.value.files.size(), 1u);
  EXPECT_EQ(probed.value.files[0].path, shop_.path("site/pack/mod.abi3.so"));
  EXPECT_EQ(probed.value.packages, std::vector<std::string>{"pack"});
}

// cuda-core's _tensor_bridge is such a file.
TEST_F(AuditProbe, TorchsCFunctionsMayBeLoadedByThePackageItself) {
  const std::string torch =
      shop_.shared("site/torch/lib/libtorch_cpu.so", "int aoti_torch_one(void) { return 1; }\n");
  snapshot_.torch = Probed<Torch>::of({});
  snapshot_.torch.value.libraries = {{torch, "libtorch_cpu.so", "", {}}};
  shop_.shared("site/pack/mod.abi3.so", "int aoti_torch_one(void);\n" + module("mod", "aoti_torch_one()"));
  const AuditRow row = only_row();
  EXPECT_EQ(row.verdict, AuditVerdict::Unknown);
  EXPECT_EQ(row.value, torch);
}

TEST_F(AuditProbe, LeftoversOfAnotherPythonAreNoFault) {
  shop_.write("site/mod.cpython-310-x86_64-linux-gnu.so", "");
  EXPECT_EQ(only_row().verdict, AuditVerdict::NotForThisPython);
}

TEST_F(AuditProbe, AFileThatIsNoLibraryIsCorrupt) {
  shop_.write("site/mod.abi3.so", "");
  EXPECT_EQ(only_row().cause, "corrupt_binary");
}

TEST_F(AuditProbe, ANameThatNobodyExportsFails) {
  shop_.shared("site/mod.so", module("mod", "other()"));
  const AuditRow row = only_row();
  EXPECT_EQ(row.verdict, AuditVerdict::Fails);
  EXPECT_NE(row.why.english().find("other"), std::string::npos);
  EXPECT_EQ(row.cause, "");
}

TEST_F(AuditProbe, ANameOfPythonThatThisOneLacksIsItsAbi) {
  shop_.shared("site/mod.abi3.so", "int PyNew_Thing(void); int PyInit_mod(void) { return PyNew_Thing(); }\n");
  EXPECT_EQ(only_row().cause, "python_abi_tag_mismatch");
}

// import binds what comes along at once too.
TEST_F(AuditProbe, ANameThatABroughtLibraryLacksFails) {
  shop_.shared("site/libb.so", "int gone(void); int other(void) { return gone(); }\n",
               {"-Wl,-soname,libb.so"});
  shop_.shared("site/mod.so", module("mod", "other()"), {shop_.path("site/libb.so"), "-Wl,-rpath,$ORIGIN"});
  const AuditRow row = only_row();
  EXPECT_EQ(row.verdict, AuditVerdict::Fails);
  EXPECT_NE(row.why.english().find("gone, which libb.so needs"), std::string::npos) << row.why;
}

TEST_F(AuditProbe, ALibraryOfItsPackageBesideItIsReachedByOrigin) {
  shop_.shared("site/pack.libs/libb-1a2b.so", "int other(void) { return 1; }\n",
               {"-Wl,-soname,libb-1a2b.so"});
  shop_.shared("site/pack/mod.so", module("mod", "other()"),
               {shop_.path("site/pack.libs/libb-1a2b.so"), "-Wl,-rpath,$ORIGIN/../pack.libs"});
  EXPECT_EQ(only_row().verdict, AuditVerdict::Loads);
}

// What ctypes.CDLL in the package's __init__ does cannot be read from the files.
TEST_F(AuditProbe, ALibraryThatLiesInAPackageButIsNotReachedIsUnknown) {
  shop_.shared("site/pack.libs/libb.so", "int other(void) { return 1; }\n", {"-Wl,-soname,libb.so"});
  shop_.shared("site/pack/mod.so", module("mod", "other()"), {shop_.path("site/pack.libs/libb.so")});
  const AuditRow row = only_row();
  EXPECT_EQ(row.verdict, AuditVerdict::Unknown);
  EXPECT_EQ(row.field, "settled_by/0");
  EXPECT_EQ(row.value, shop_.path("site/pack.libs/libb.so"));
}

// Loading the library first does not help against a name that it does not have.
TEST_F(AuditProbe, AnUnreachedLibraryHidesNoMissingName) {
  shop_.shared("link/libb.so", "int other(void) { return 1; }\n", {"-Wl,-soname,libb.so"});
  shop_.shared("site/pack.libs/libb.so", "int another(void) { return 1; }\n", {"-Wl,-soname,libb.so"});
  shop_.shared("site/pack/mod.so", module("mod", "other()"), {shop_.path("link/libb.so")});
  EXPECT_EQ(only_row().verdict, AuditVerdict::Fails);
}

TEST_F(AuditProbe, ARequestForAnExecutableStackIsNoted) {
  shop_.shared("site/mod.cpython-311-x86_64-linux-gnu.so", module("mod"), {"-Wl,-z,execstack"});
  const auto files = audit();
  ASSERT_EQ(files.size(), 1u);
  const AuditedFile& file = files.front();
  EXPECT_EQ(file.executable_stack, std::vector<std::string>{file.path});
  EXPECT_EQ(judge(file, "x86_64", false).verdict, AuditVerdict::Loads);
  EXPECT_EQ(judge(file, "x86_64", true).cause, "executable_stack");
  EXPECT_EQ(judge(file, "x86_64", std::nullopt).verdict, AuditVerdict::Unknown);
}

TEST_F(AuditProbe, ALibraryThatLiesNowhereFails) {
  shop_.shared("link/libcudart.so.12", "int other(void) { return 1; }\n", {"-Wl,-soname,libcudart.so.12"});
  shop_.shared("site/mod.so", module("mod", "other()"), {shop_.path("link/libcudart.so.12")});
  const AuditRow row = only_row();
  EXPECT_EQ(row.verdict, AuditVerdict::Fails);
  EXPECT_EQ(row.cause, "missing_cudart");
}

TEST_F(AuditProbe, AFolderThatHoldsItselfEnds) {
  shop_.shared("site/mod.so", module("mod"));
  std::filesystem::create_directory_symlink(shop_.path("site"), shop_.path("site/again"));
  EXPECT_EQ(only_row().verdict, AuditVerdict::Loads);
}

}  // namespace
}  // namespace scankit::probes
