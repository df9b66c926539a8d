// SPDX-License-Identifier: Apache-2.0
// A Python, a torch and modules of a few lines each, made by the real compiler when the test runs.
#include "doctor/probes/extensions/extensions.h"

#include <unistd.h>

#include <algorithm>

#include "doctor/elf/library_test.h"

namespace scankit::probes {
namespace {

using test::Workshop;

constexpr const char* kModule =
    "int PyLong_FromLong(long); int PyInit_mod(void) { return PyLong_FromLong(1); }\n";

class Extensions : public testing::Test {
 protected:
  Extensions() {
    // Like an interpreter that has libpython inside: its names come from the program itself.
    const std::string program = shop_.build(
        "python", "int PyLong_FromLong(long x) { return (int)x; }\nint main(void) { return 0; }\n",
        {"-rdynamic"});
    Python python;
    python.executable = program;
    python.version = "3.11.7";
    python.soabi = "cpython-311-x86_64-linux-gnu";
    python.extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".abi3.so", ".so"};
    for (const char* folder : {"first", "site", "last"}) {
      EXPECT_TRUE(make_directories(shop_.path(folder)));
      python.sys_path.push_back({shop_.path(folder), "site", true});
    }
    snapshot_.python = Probed<Python>::of(std::move(python));
    snapshot_.torch = Probed<Torch>::absent("no torch");
  }

  // c10 with the new strings, behind an extension module as torch has it.
  void make_torch() {
    const std::string lib = "site/torch/lib/";
    shop_.shared(lib + "libc10.so",
                 "int e "
                 "__asm__(\"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
                 "traitsIcESaIcEEE\") = 1;\n"
                 "int s __asm__(\"_ZN3c104cuda9SetDeviceEab\") = 1; int d = 1;\n",
                 {"-Wl,-soname,libc10.so"});
    shop_.shared(lib + "libtorch_python.so", "int THPVariableClass = 1;\n",
                 {"-Wl,-soname,libtorch_python.so", "-Wl,--no-as-needed", shop_.path(lib + "libc10.so"),
                  "-Wl,-rpath,$ORIGIN"});
    shop_.shared(lib + "libtorch_global_deps.so", "int deps = 1;\n", {});
    shop_.shared("site/torch/_C.cpython-311-x86_64-linux-gnu.so", "int PyInit__C(void) { return 1; }\n",
                 {"-Wl,--no-as-needed", shop_.path(lib + "libtorch_python.so"), "-Wl,-rpath,$ORIGIN/lib"});
    Torch torch;
    torch.location = shop_.path("site/torch");
    torch.cuda = "13.0";
    for (const char* name : {"libc10.so", "libtorch_python.so", "libtorch_global_deps.so"})
      torch.libraries.push_back({shop_.path(lib + name), name, "", {}});
    snapshot_.torch = Probed<Torch>::of(std::move(torch));
  }

  std::vector<Extension> probe(const std::string& module = "mod") {
    const auto host = make_real_host();
    const auto probed = probe_extensions(*host, snapshot_, {module}, torch_missing_);
    EXPECT_TRUE(probed.present()) << probed.note;
    return probed.value;
  }
  Extension only() {
    const auto found = probe();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Extension() : found.front();
  }

  Workshop shop_;
  Snapshot snapshot_;
  std::vector<TorchNeed> torch_missing_;
};

TEST_F(Extensions, NoFileIsAPresentEmptyAnswer) { EXPECT_TRUE(probe().empty()); }

TEST_F(Extensions, WithoutAPythonNothingIsKnown) {
  const auto host = make_real_host();
  Snapshot nothing;
  EXPECT_EQ(probe_extensions(*host, nothing, {"mod"}, torch_missing_).state, ProbeState::Failed);
}

TEST_F(Extensions, CopiesComeInTheOrderOfImport) {
  shop_.write("first/mod.cpython-310-x86_64-linux-gnu.so", "");
  for (const char* name : {"site/mod.so", "site/mod.abi3.so", "last/mod.cpython-311-x86_64-linux-gnu.so"})
    shop_.shared(name, kModule);
  const auto found = probe();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].tag, "cpython-310-x86_64-linux-gnu");
  EXPECT_EQ(found[0].why_not_selected.english(),
            "suffix .cpython-310-x86_64-linux-gnu.so is not one of this Python's");
  EXPECT_TRUE(found[1].selected);
  EXPECT_EQ(found[1].tag, "abi3");
  EXPECT_EQ(found[2].path, shop_.path("site/mod.so"));
  EXPECT_EQ(found[2].tag, "");
  EXPECT_EQ(found[2].why_not_selected.english(), "shadowed by " + shop_.path("site/mod.abi3.so"));
  EXPECT_EQ(found[3].sys_path_index, 2);
  EXPECT_FALSE(found[3].selected);
}

// As setuptools writes them: the name without a suffix, or a package's folder.
TEST_F(Extensions, AFinderOfAnEditableInstallComesAfterThePath) {
  shop_.shared("project/mod.abi3.so", kModule);
  shop_.shared("project/pkg/core.abi3.so", kModule);
  snapshot_.python.value.editable_finders = {"f.py: mod -> " + shop_.path("project/mod"),
                                             "f.py: pkg -> " + shop_.path("project/pkg")};
  snapshot_.distributions.value = {{.name = "mine", .editable = true, .project = shop_.path("project")}};
  EXPECT_TRUE(only().selected);  // once, although it also lies in the project's folder
  EXPECT_EQ(only().path, shop_.path("project/mod.abi3.so"));
  EXPECT_EQ(only().distribution, "mine");
  const auto below = probe("pkg.core");
  ASSERT_EQ(below.size(), 1u);
  EXPECT_TRUE(below[0].selected);
  shop_.write("project/mod.py", "");  // the finder tries sources first
  EXPECT_FALSE(only().selected);
  shop_.shared("site/mod.so", kModule);
  EXPECT_EQ(probe()[0].path, shop_.path("site/mod.so"));
  EXPECT_TRUE(probe()[0].selected);
}

TEST_F(Extensions, APackageOrASourceFileBeforeItShadowsAModule) {
  shop_.shared("site/mod.so", kModule);
  shop_.write("site/mod/data.txt", "a folder without __init__ does not count");
  EXPECT_TRUE(only().selected);
  shop_.write("site/mod.py", "");  // after the suffixes of extension modules
  EXPECT_TRUE(only().selected);
  shop_.write("first/mod.py", "");
  EXPECT_EQ(only().why_not_selected.english(), "shadowed by " + shop_.path("first/mod.py"));
  ::unlink(shop_.path("first/mod.py").c_str());
  shop_.write("site/mod/__init__.py", "");
  EXPECT_EQ(only().why_not_selected.english(), "shadowed by " + shop_.path("site/mod/__init__.py"));
}

TEST_F(Extensions, FindsWhatABuildLeftBesideThePath) {
  shop_.shared("site/mod-1.0-py3.11.egg/mod.so", kModule);
  shop_.shared("project/build/lib.linux-x86_64-cpython-311/mod.so", kModule);
  Distribution project;
  project.name = "mod-project";
  project.editable = true;
  project.project = shop_.path("project");
  snapshot_.distributions = Probed<std::vector<Distribution>>::of({project});
  const auto found = probe();
  ASSERT_EQ(found.size(), 2u);
  for (const Extension& copy : found) EXPECT_EQ(copy.sys_path_index, -1);
  EXPECT_EQ(found[1].distribution, "mod-project");
}

TEST_F(Extensions, RecordNamesTheOwner) {
  shop_.shared("site/mod.so", kModule);
  shop_.write("site/pkg-1.0.dist-info/RECORD", "pkg/__init__.py,,\nmod.so,sha256=x,1\n");
  Distribution owner;
  owner.name = "pkg";
  owner.path = shop_.path("site/pkg-1.0.dist-info");
  snapshot_.distributions = Probed<std::vector<Distribution>>::of({owner});
  EXPECT_EQ(only().distribution, "pkg");
}

TEST_F(Extensions, FilesThatAreNoLibrariesHaveAState) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty"},
      {"<!DOCTYPE html>", "html"},
      {"version https://git-lfs.github.com/spec/v1\n", "git-lfs"},
      {"PK\x03\x04", "not-elf"}};
  for (const auto& [bytes, state] : cases) {
    shop_.write("site/mod.so", bytes);
    const Extension copy = only();
    EXPECT_EQ(copy.file_state, state);
    EXPECT_TRUE(copy.selected);
    EXPECT_FALSE(copy.resolved);
    EXPECT_FALSE(copy.resolution_note.empty());
  }
  shop_.shared("site/mod.so", kModule);
  const std::string whole = shop_.read("site/mod.so");
  shop_.write("site/mod.so", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(only().file_state, "truncated");
  ::unlink(shop_.path("site/mod.so").c_str());
  ASSERT_EQ(::symlink("gone", shop_.path("site/mod.so").c_str()), 0);
  EXPECT_EQ(only().file_state, "vanished");
}

TEST_F(Extensions, AForeignMachineIsNamedAndNotResolved) {
  shop_.shared("site/mod.so", kModule);
  std::string bytes = shop_.read("site/mod.so");
  bytes[18] = static_cast<char>(183);  // e_machine: aarch64
  shop_.write("site/mod.so", bytes);
  const Extension copy = only();
  EXPECT_EQ(copy.file_state, "elf");
  EXPECT_EQ(copy.machine, "aarch64");
  EXPECT_FALSE(copy.resolved);
}

TEST_F(Extensions, AnInterpreterProvidesPythonsNames) {
  shop_.shared("site/mod.so", kModule);
  const Extension copy = only();
  EXPECT_TRUE(copy.resolved) << copy.resolution_note;
  EXPECT_TRUE(copy.has_init);
  EXPECT_EQ(copy.inits, std::vector<std::string>{"PyInit_mod"});
  EXPECT_EQ(copy.missing_symbols.size(), 0u);
  EXPECT_EQ(copy.provided, copy.undefined);
  EXPECT_EQ(copy.closure.front(), copy.path);
  EXPECT_EQ(copy.string_abi, "neutral");
}

TEST_F(Extensions, NamesMissingLibrariesAndWhatIsThereInstead) {
  shop_.shared("gone/libcudart.so.12", "int cudaMalloc(void) { return 0; }\n",
               {"-Wl,-soname,libcudart.so.12"});
  shop_.shared("site/mod.so", "int cudaMalloc(void); int PyInit_mod(void) { return cudaMalloc(); }\n",
               {shop_.path("gone/libcudart.so.12"), "-Wl,-rpath," + shop_.path("nowhere")});
  ::unlink(shop_.path("gone/libcudart.so.12").c_str());
  shop_.write("cuda/lib64/libcudart.so.99", "");
  Toolkit toolkit;
  toolkit.root = shop_.path("cuda");
  snapshot_.toolkits = Probed<std::vector<Toolkit>>::of({toolkit});
  const Extension copy = only();
  EXPECT_EQ(copy.cuda_major, "12");
  ASSERT_EQ(copy.missing_libraries.size(), 1u);
  const MissingLibrary& missing = copy.missing_libraries.front();
  EXPECT_EQ(missing.soname, "libcudart.so.12");
  EXPECT_EQ(missing.needed_by, copy.path);
  EXPECT_EQ(english(missing.searched.front()), "RUNPATH of " + copy.path + " " + shop_.path("nowhere"));
  EXPECT_NE(std::ranges::find(missing.same_library_other_version,
                              "libcudart.so.99 (" + shop_.path("cuda/lib64/libcudart.so.99") + ")"),
            missing.same_library_other_version.end());
  ASSERT_EQ(copy.missing_symbols.size(), 1u);
  EXPECT_EQ(copy.missing_symbols.front().owner, "cuda");
}

TEST_F(Extensions, EveryMissingNameIsClassified) {
  make_torch();
  shop_.shared("site/mod.so",
               "extern char a __asm__(\"_ZN3c105ErrorC1ENS_14SourceLocationESs\");\n"
               "extern char b __asm__(\"_ZN3c104cuda9SetDeviceEi\"); extern char c "
               "__asm__(\"_Z7my_ownerRN2at6TensorE\");\n"
               "extern char THPVariableClass; extern char w __attribute__((weak)); extern char d;\n"
               "void* keep[] = {&a, &b, &c, &THPVariableClass, &w, &d}; int PyInit_mod(void) { return 0; }\n",
               {"-Wl,--no-as-needed", shop_.path("site/torch/lib/libc10.so")});
  const Extension copy = only();
  ASSERT_TRUE(copy.resolved) << copy.resolution_note;
  EXPECT_TRUE(copy.uses_torch);
  EXPECT_EQ(copy.string_abi, "old");
  EXPECT_EQ(copy.needs_torch_first, std::vector<std::string>{"libc10.so"});
  EXPECT_TRUE(copy.missing_libraries.empty());
  ASSERT_EQ(copy.missing_symbols.size(), 4u);
  const auto named = [&](const std::string& name) {
    const auto it = std::ranges::find(copy.missing_symbols, name, &MissingSymbol::name);
    EXPECT_NE(it, copy.missing_symbols.end()) << name;
    return it == copy.missing_symbols.end() ? MissingSymbol() : *it;
  };
  const std::string libc10 = shop_.path("site/torch/lib/libc10.so");
  EXPECT_EQ(named("_ZN3c105ErrorC1ENS_14SourceLocationESs").flipped_exported_by, libc10);
  EXPECT_EQ(named("_ZN3c104cuda9SetDeviceEi").flipped_exported_by, "");
  EXPECT_EQ(named("_ZN3c104cuda9SetDeviceEi").near,
            std::vector<std::string>{"c10::cuda::SetDevice(signed char, bool)"});
  EXPECT_EQ(named("_Z7my_ownerRN2at6TensorE").owner, "own");
  EXPECT_EQ(named("THPVariableClass").exported_by_torch, shop_.path("site/torch/lib/libtorch_python.so"));
}

TEST_F(Extensions, ReportsWhatTorchItselfLacks) {
  make_torch();
  shop_.shared("site/mod.so", kModule);
  only();
  EXPECT_TRUE(torch_missing_.empty());
  ::unlink(shop_.path("site/torch/lib/libc10.so").c_str());
  only();
  ASSERT_EQ(torch_missing_.size(), 1u);
  EXPECT_EQ(torch_missing_[0].soname, "libc10.so");
  EXPECT_EQ(torch_missing_[0].needed_by, shop_.path("site/torch/lib/libtorch_python.so"));
}

TEST_F(Extensions, ANewerGlibcIsAnUnmetVersion) {
  const std::string map = shop_.write("v.map", "GLIBC_2.99 { global: future; };");
  shop_.shared("stub/libc.so.6", "int future(void) { return 1; }\n",
               {"-nostdlib", "-Wl,-soname,libc.so.6", "-Wl,--version-script=" + map});
  shop_.shared("site/mod.so", "int future(void); int PyInit_mod(void) { return future(); }\n",
               {"-nostdlib", "-Wl,--no-as-needed", shop_.path("stub/libc.so.6")});
  const Extension copy = only();
  EXPECT_EQ(copy.glibc_min, "2.99");
  ASSERT_EQ(copy.unmet_versions.size(), 1u);
  EXPECT_EQ(copy.unmet_versions[0].version, "GLIBC_2.99");
  EXPECT_TRUE(copy.unmet_versions[0].provided_max.starts_with("GLIBC_2."));
  EXPECT_EQ(copy.unmet_versions[0].symbols, std::vector<std::string>{"future"});
  EXPECT_EQ(copy.unmet_versions[0].needed_by, copy.path);
}

// -z execstack sets PF_X in PT_GNU_STACK of the library; the module that needs it has no such flag.
TEST_F(Extensions, NamesTheFilesThatRequestAnExecutableStack) {
  shop_.shared("lib/libhelper.so", "int helper(void) { return 1; }\n", {"-Wl,-z,execstack"});
  const auto module_with = [&](const std::string& stack) {
    shop_.shared("site/mod.so", "int helper(void); int PyInit_mod(void) { return helper(); }\n",
                 {shop_.path("lib/libhelper.so"), "-Wl,-z," + stack, "-Wl,-rpath," + shop_.path("lib")});
    return only().executable_stack;
  };
  EXPECT_EQ(module_with("noexecstack"), std::vector<std::string>{shop_.path("lib/libhelper.so")});
  EXPECT_EQ(module_with("execstack").size(), 2u);
  shop_.shared("lib/libhelper.so", "int helper(void) { return 1; }\n", {"-Wl,-z,noexecstack"});
  EXPECT_EQ(module_with("noexecstack"), std::vector<std::string>{});
}

TEST_F(Extensions, OneFileIsReadByItself) {
  const std::string path = shop_.shared(
      "any/where.abi3.so",
      "const char id[] = \"__pybind11_internals_v11_system\"; int PyInit_where(void) { return 0; }\n");
  const auto host = make_real_host();
  const Extension copy = inspect_extension(*host, path);
  EXPECT_EQ(copy.module, "where");
  EXPECT_EQ(copy.tag, "abi3");
  EXPECT_EQ(copy.file_state, "elf");
  EXPECT_EQ(copy.pybind_internals, "__pybind11_internals_v11_system");
  EXPECT_TRUE(copy.has_init);
  EXPECT_FALSE(copy.resolved);
  EXPECT_EQ(inspect_extension(*host, shop_.path("absent.so")).file_state, "vanished");
}

}  // namespace
}  // namespace scankit::probes
