// SPDX-License-Identifier: Apache-2.0
#include "doctor/preflight/probes/sources.h"

#include <gtest/gtest.h>

#include "doctor/elf/library_test.h"

namespace scankit::preflight {
namespace {

using test::Workshop;

std::vector<std::string> values(const std::vector<SourceFact>& facts) {
  std::vector<std::string> found;
  for (const SourceFact& fact : facts) found.push_back(fact.value);
  return found;
}
using Words = std::vector<std::string>;

SourceTree setup(std::string_view text) {
  SourceTree tree{.build_file = "setup.py"};
  read_setup_py(text, tree);
  return tree;
}

constexpr const char* kSetup = R"py("""A docstring with 'csrc/not_a_source.cu' and -std=c++11."""
import os
import torch  # at the top
from torch.utils.cpp_extension import (
    BuildExtension,
    CppExtension,
    CUDAExtension,
)

PACKAGE_NAME = "scan"
cc_flag = []
if not SKIP_CUDA_BUILD:
    if HIP_BUILD:
        cc_flag += ["-std=c++14"]
    else:
        if CUDA_HOME is not None:
            if bare_metal_version < Version("11.6"):
                raise RuntimeError("old")
        cc_flag.append("arch=compute_70,code=sm_70")
        if bare_metal_version >= Version("11.8"):
            cc_flag.append("arch=compute_90,code=sm_90")
    # "csrc/commented_out.cu"
    ext_modules.append(
        CUDAExtension(
            name="scan_cuda",
            sources=["csrc/scan.cpp", "csrc/scan_fwd.cu", f"csrc/{name}.cu", "csrc/*.cu"],
            extra_compile_args={"cxx": ["-O3", "-std=c++17"]},
        )
    )
setup(name='scan-kernels', ext_modules=ext_modules, cmdclass={"build_ext": BuildExtension})
)py";

TEST(SetupPy, IsReadAsText) {
  const SourceTree tree = setup(kSetup);
  EXPECT_TRUE(tree.imports_torch);
  ASSERT_EQ(tree.cuda.size(), 1u) << "its import is no use";
  EXPECT_EQ(tree.cuda[0].guards, Words{"not SKIP_CUDA_BUILD"});
  EXPECT_TRUE(tree.wants_ninja);
  EXPECT_EQ(tree.name, "scan-kernels");
  EXPECT_EQ(tree.modules, Words{"scan_cuda"});
  EXPECT_EQ(values(tree.sources), (Words{"csrc/scan.cpp", "csrc/scan_fwd.cu"}));
  EXPECT_EQ(values(tree.archs), (Words{"70", "90"}));
  EXPECT_EQ(values(tree.standards), (Words{"14", "17"}));
  EXPECT_EQ(values(tree.minimum_cuda), Words{"11.6"});
}

TEST(SetupPy, KeepsTheConditionsOfWhatItSays) {
  const SourceTree tree = setup(kSetup);
  EXPECT_EQ(tree.standards[0].guards, (Words{"not SKIP_CUDA_BUILD", "HIP_BUILD"}));
  EXPECT_EQ(tree.archs[0].guards, (Words{"not SKIP_CUDA_BUILD", "not (HIP_BUILD)"}));
  EXPECT_EQ(tree.archs[1].guards,
            (Words{"not SKIP_CUDA_BUILD", "not (HIP_BUILD)", "bare_metal_version >= Version(\"11.8\")"}));
  EXPECT_EQ(tree.standards[1].guards, Words{"not SKIP_CUDA_BUILD"});
  EXPECT_EQ(tree.archs[0].line, 19u);
}

TEST(SetupPy, AsksForAGpuWhereTheFunctionIsCalled) {
  const char* text =
      "import torch\n"
      "def capability():\n    return torch.cuda.get_device_capability()\n"
      "def never():\n    return torch.cuda.get_device_name()\n"
      "if torch.cuda.is_available():\n    arch = capability()\n";
  const SourceTree tree = setup(text);
  ASSERT_EQ(values(tree.asks_gpu), (Words{"get_device_capability", "get_device_name"}));
  EXPECT_EQ(tree.asks_gpu[0].guards, Words{"torch.cuda.is_available()"});
  EXPECT_EQ(tree.asks_gpu[1].guards, Words{"def never"});
}

// The rule of state-spaces/mamba since commit f577286d: no CUDA code unless a variable says so.
TEST(SetupPy, NamesTheSwitchThatIsOffByItself) {
  const char* text =
      "FORCE = os.getenv(\"MAMBA_FORCE_BUILD\", \"FALSE\") == \"TRUE\"\n"
      "KEEP = os.getenv(\"MAMBA_KEEP_CUDA_BUILD\", \"FALSE\") == \"TRUE\"\n"
      "if KEEP:\n    ext.append(CUDAExtension(name='scan_cuda', sources=[]))\n";
  const SourceTree tree = setup(text);
  EXPECT_EQ(tree.opt_in, "MAMBA_KEEP_CUDA_BUILD");
  EXPECT_EQ(tree.opt_in_name, "KEEP");
  EXPECT_EQ(setup(kSetup).opt_in, "");
  EXPECT_EQ(setup("KEEP = os.getenv('KEEP', 'TRUE') == 'TRUE'\nif OTHER:\n  CUDAExtension('a', [])\n").opt_in,
            "");
  EXPECT_EQ(
      setup("SKIP = os.getenv('SKIP', 'FALSE') == 'TRUE'\nif not SKIP:\n  CUDAExtension('a', [])\n").opt_in,
      "");
}

TEST(SetupPy, HostileTextIsRead) {
  setup("'''never closed\nCUDAExtension(");
  setup("x = \"never closed\n\\");
  setup(std::string(100000, '('));
  setup(std::string(1000, '\0') + "\"");
  EXPECT_FALSE(setup("else:\nelif x:\n  sources = ['a.cu']\n").sources.empty());
}

// Each of these was once a false alarm.
TEST(SetupPy, TakesNothingForCertainThatItsOwnStatementDecides) {
  const SourceTree tree = setup(
      "flags = ['-std=c++14'] if WINDOWS else ['-std=c++17']\n"
      "if WINDOWS: flags = ['-std=c++11']\n"
      "def unused():\n    return '-std=c++03'\n"
      "class Build:\n    def run(self):\n        self.flags = '-std=c++98'\n"
      "def used():\n    return '-std=c++20'\n"
      "flags = used()\n");
  ASSERT_EQ(tree.standards.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_FALSE(tree.standards[i].guards.empty()) << tree.standards[i].value;
  EXPECT_EQ(tree.standards[5].value, "20");
  EXPECT_TRUE(tree.standards[5].guards.empty());
}

TEST(SetupPy, CompilesWhatAnExtensionOrAListOfSourcesNames) {
  const SourceTree tree = setup(
      "shutil.copy('from.cpp', 'to.cpp')\nwith open('made.cu', 'w') as out:\n    out.write('')\n"
      "sources = [os.path.join(here, 'csrc', 'a.cpp')]\nsources += ['b.cu']\n"
      "CUDAExtension('m', ['c.cu', os.path.join(here, 'd.cpp')])\nsetup(package_data={'m': ['e.cpp']})\n");
  EXPECT_EQ(values(tree.sources), (Words{"a.cpp", "b.cu", "c.cu", "d.cpp"}));
  EXPECT_EQ(tree.modules, Words{"m"});
  EXPECT_TRUE(tree.generates);
}

TEST(SetupPy, OfAnySizeIsReadInBoundedTime) {
  std::string list = "flags = [\n", nested, calls;
  for (int i = 0; i < 30000; ++i) list += "  '-std=c++14',\n";
  for (int i = 0; i < 2000; ++i)
    nested += std::string(static_cast<std::size_t>(i % 100), ' ') + "def f" + std::to_string(i) + "():\n";
  for (int i = 0; i < 9000; ++i) calls += "def f():\n  f(f('-std=c++14'))\n";
  for (const std::string& text : {list, nested + list, calls}) {
    const SourceTree tree = setup(text);
    EXPECT_FALSE(tree.standards.empty());
  }
  EXPECT_FALSE(setup(list).not_read.empty());
}

TEST(CompilerFlags, NameStandardsAndArchitectures) {
  EXPECT_EQ(standards_in("-std=c++17"), Words{"17"});
  EXPECT_EQ(standards_in("--std=gnu++2a"), Words{"20"});
  EXPECT_EQ(standards_in("-std=c11 /std:c++14"), Words{});
  EXPECT_EQ(architectures_in("arch=compute_90a,code=sm_90a"), Words{"90"});
  EXPECT_EQ(architectures_in("arch=compute_{cc}"), Words{});
}

TEST(CMakeLists, AreReadWithoutFollowingVariables) {
  SourceTree tree{.build_file = "CMakeLists.txt"};
  read_cmake_lists(
      "project(scan LANGUAGES CXX CUDA)\nset(CMAKE_CXX_STANDARD 14) # set(CMAKE_CXX_STANDARD 11)\n"
      "set(CMAKE_CUDA_ARCHITECTURES \"35;80\")\nif(WIN32)\nset(CMAKE_CXX_STANDARD 98)\nendif()\n",
      tree);
  EXPECT_EQ(tree.cuda.size(), 1u);
  EXPECT_EQ(values(tree.standards), (Words{"14", "98"}));
  EXPECT_EQ(tree.standards[1].guards.size(), 1u);
  EXPECT_EQ(values(tree.archs), (Words{"35", "80"}));
}

TEST(CMakeLists, MaySpanLinesAndHoldComments) {
  SourceTree tree{.build_file = "CMakeLists.txt"};
  const char* text =
      "# find_package(Nothing)\nproject(\n  scan # LANGUAGES Fortran\n  LANGUAGES CXX\n            CUDA)\n"
      "find_package ( Torch REQUIRED )\noption(USE_OLD \"-std=c++11 (not wise)\" OFF)\n";
  read_cmake_lists(text, tree);
  EXPECT_EQ(tree.name, "scan");
  EXPECT_EQ(tree.cuda.size(), 1u);
  EXPECT_TRUE(finds_torch(text));
  EXPECT_TRUE(tree.standards.empty());
  EXPECT_FALSE(finds_torch("find_package(TorchVision)\n# find_package(Torch)\n"));
  read_cmake_lists("project(" + std::string(100000, '('), tree);
}

class Folder : public testing::Test {
 protected:
  Folder() {
    shop_.write("torch/include/ATen/ATen.h", "#pragma once\n");
    shop_.write("torch/include/ATen/cuda/CUDAContext.h", "#pragma once\n#include <ATen/cuda/Light.h>\n");
    shop_.write("torch/include/ATen/cuda/Light.h",
                "#pragma once\n#include <cusparse.h>\n#ifdef USE_X\n#include <curand.h>\n#endif\n");
    torch_ = Probed<Torch>::of({});
    torch_.value.location = shop_.path("torch");
  }
  Probed<SourceTree> probe() {
    const auto host = make_real_host();
    return probe_sources(*host, shop_.path("src"), torch_);
  }
  Workshop shop_;
  Probed<Torch> torch_;
};

TEST_F(Folder, HoldsWhatTheBuildNames) {
  shop_.write("src/setup.py", kSetup);
  shop_.write("src/pyproject.toml",
              "[build-system]\nrequires = [\n  \"setuptools\",  # and\n  'torch>=2',\n]\n");
  shop_.write("src/PKG-INFO", "Metadata-Version: 2.1\nName: scan\nHome-page: https://example.org/scan\n");
  shop_.write(
      "src/csrc/scan.cpp",
      "// #include <THC/THCold.h>\n#include <ATen/ATen.h>\n#include <THC/THC.h>\n#ifdef OLD\n#include "
      "<ATen/gone.h>\n#endif\n#include <ATen/cuda/CUDAContext.h>\n"
      "void f(at::Tensor x) { AT_DISPATCH_FLOATING_TYPES(x.type(), \"f\", [&] {}); }\n"
      "void g(at::Tensor x) { AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), \"g\", [&] { y.type(); }); }\n");
  const auto found = probe();
  ASSERT_TRUE(found.present()) << found.note;
  const SourceTree& tree = found.value;
  EXPECT_TRUE(tree.asked && tree.unpacked_archive && tree.has_pyproject);
  EXPECT_EQ(tree.homepage, "https://example.org/scan");
  EXPECT_EQ(tree.build_requires, (Words{"setuptools", "torch>=2"}));
  EXPECT_EQ(values(tree.missing), Words{"csrc/scan_fwd.cu"});
  EXPECT_EQ(values(tree.lost_headers), Words{"THC/THC.h"});
  EXPECT_EQ(tree.lost_headers[0].line, 3u);
  EXPECT_EQ(values(tree.cuda_headers), Words{"cusparse.h"});
  ASSERT_EQ(tree.type_dispatch.size(), 1u);
  EXPECT_EQ(tree.type_dispatch[0].line, 8u);
}

TEST_F(Folder, ThatBuildsNoTorchExtensionIsNone) {
  EXPECT_EQ(probe().state, ProbeState::Failed) << "the user named it";
  shop_.write("src/setup.py", "from setuptools import setup\nsetup(name='x')\n");
  EXPECT_EQ(probe().state, ProbeState::Failed);
}

TEST_F(Folder, JoinedNamesCountAsFoundWhereverTheyLie) {
  shop_.write("src/setup.py", "CUDAExtension('m', [os.path.join(here, 'csrc', 'a.cu'), 'b.cu'])\n");
  shop_.write("src/csrc/a.cu", "");
  EXPECT_EQ(values(probe().value.missing), Words{"b.cu"});
}

}  // namespace
}  // namespace scankit::preflight
