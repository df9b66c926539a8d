// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/probes/imports/importers.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class ProjectSources : public PythonTree {
 protected:
  ProjectSources() {
    make_venv("venv", install("base"));
    folder("project");
    host_.variables["PYTHONSAFEPATH"] = "1";  // the tests' own current folder stays out of it
  }
  Probed<Project> probe(const std::string& folder = "project") {
    auto python = probe_python(host_, at("venv"));
    EXPECT_TRUE(python.present()) << python.note;
    python.value.sys_path.insert(python.value.sys_path.begin(), {at(folder), "cwd", true});
    return probe_project(host_, python.value);
  }
  ProjectImport only_import() {
    const auto probed = probe();
    EXPECT_TRUE(probed.present()) << probed.note;
    EXPECT_EQ(probed.value.imports.size(), 1u);
    return probed.value.imports.empty() ? ProjectImport() : probed.value.imports.front();
  }
};

constexpr const char* kGuarded =
    "try:\n    import selective_scan_cuda_oflex\nexcept Exception:\n    pass\n\n\n";

TEST_F(ProjectSources, NameTheLineTheProgramAndTheBuild) {
  write("project/classification/main.py",
        "from models import build\nif __name__ == '__main__':\n  build()\n");
  write("project/classification/models/__init__.py", "from .vmamba import VSSM\n");
  write("project/classification/models/vmamba.py",
        "try:\n  from .ops import f\nexcept:\n  from ops import f\n");
  write("project/classification/models/ops.py",
        std::string(kGuarded) +
            "class Scan:\n    def forward(ctx, u):\n        return selective_scan_cuda_oflex.fwd(u)\n");
  write("project/kernels/setup.py",
        "from torch.utils.cpp_extension import CUDAExtension\n"
        "names = dict(oflex='selective_scan_cuda_oflex')\n"
        "setup(ext_modules=[CUDAExtension(name=names[m], sources=s) for m in MODES])\n");
  const auto probed = probe();
  ASSERT_TRUE(probed.present()) << probed.note;
  ASSERT_EQ(probed.value.imports.size(), 1u);
  const ProjectImport& import = probed.value.imports[0];
  EXPECT_EQ(import.file, at("project/classification/models/ops.py"));
  EXPECT_EQ(import.line, 2u);
  EXPECT_EQ(import.used_at, 9u);
  EXPECT_EQ(import.program, at("project/classification/main.py"));
  ASSERT_EQ(probed.value.modules.size(), 1u);
  EXPECT_EQ(probed.value.modules[0].built_by, "MzeroMiko/VMamba");
  EXPECT_EQ(probed.value.modules[0].setup, at("project/kernels/setup.py"));
  EXPECT_EQ(probed.value.modules[0].setup_line, 2u);
  EXPECT_EQ(probed.value.modules[0].path, "");
}

TEST_F(ProjectSources, KnowWhatTheirOwnSetupFilesBuild) {
  write("project/train.py", "import my_scan_ext\nimport numpy\n");
  write("project/ops/setup.py",
        "setup(ext_modules=[CUDAExtension('my_scan_ext', ['a.cu'])], install_requires=['numpy'])\n");
  EXPECT_EQ(only_import().module, "my_scan_ext");
  EXPECT_EQ(probe().value.modules[0].built_by, "");
}

// A file that import takes, also one that was built in place below the directory.
TEST_F(ProjectSources, FindTheModule) {
  write("project/train.py", kGuarded);
  EXPECT_EQ(probe().value.modules.at(0).path, "");
  const auto built = write("project/kernels/selective_scan_cuda_oflex.cpython-311-x86_64-linux-gnu.so", "x");
  EXPECT_EQ(probe().value.modules.at(0).path, built);
  const auto installed = write(
      "venv/lib/python3.11/site-packages/selective_scan_cuda_oflex.cpython-311-x86_64-linux-gnu.so", "x");
  EXPECT_EQ(probe().value.modules.at(0).path, installed);
}

TEST_F(ProjectSources, PassOverWhatIsNoneOfTheirs) {
  const std::string text = "import selective_scan_cuda_oflex\n";
  write("project/.hidden/a.py", text);
  write("project/env/pyvenv.cfg", "");
  write("project/env/lib/a.py", text);
  write("project/conda/conda-meta/history", "");
  write("project/conda/a.py", text);
  write("project/lib/site-packages/a.py", text);
  write("project/tests/a.py", text);
  write("project/test_scan.py", text);
  write("project/setup.py", text);
  write("elsewhere/a.py", text);
  link(at("elsewhere"), "project/link");
  write("project/1/2/3/4/5/6/7/a.py", text);
  write("project/plain.py",
        "import numpy\n# import selective_scan_cuda_oflex\nx = 'import selective_scan_cuda_oflex'\n");
  const auto probed = probe();
  EXPECT_EQ(probed.state, ProbeState::Absent) << probed.value.imports.size();
  EXPECT_NE(probed.note.english().find("none imports a compiled module"), std::string::npos) << probed.note;
}

TEST_F(ProjectSources, AreNotReadInAHomeDirectory) {
  write("home/train.py", "import selective_scan_cuda_oflex\n");
  EXPECT_EQ(probe("home").state, ProbeState::Absent);
}

TEST_F(ProjectSources, StopAtTheirLimits) {
  for (int i = 0; i < 900; ++i)
    write("project/f" + std::to_string(i) + ".py", "import selective_scan_cuda\n");
  write("project/big.py", std::string(1u << 20, '#') + "\nimport selective_scan_cuda\n");
  const auto probed = probe();
  ASSERT_TRUE(probed.present());
  EXPECT_FALSE(probed.value.whole);
  EXPECT_EQ(probed.value.imports.size(), 60u);
  EXPECT_LE(probed.value.files, 800u);
}

TEST_F(ProjectSources, SayWhatTheyTakeFromMamba) {
  write("project/train.py",
        "from mamba_ssm import Mamba2\nfrom mamba_ssm import Mamba as M\nimport mamba_ssm\n"
        "from mamba_ssm.ops.triton.layer_norm import RMSNorm\n"
        "from mamba_ssm.ops.selective_scan_interface import selective_scan_fn, selective_scan_ref\n");
  write("project/mamba_ssm/ops/x.py", "from mamba_ssm import Mamba\n");
  const auto probed = probe();
  ASSERT_TRUE(probed.present()) << probed.note;
  std::vector<std::string> said;
  for (const LayerImport& layer : probed.value.layers)
    said.push_back(std::to_string(layer.line) + " " + layer.name + " " + layer.needs);
  EXPECT_EQ(said, (std::vector<std::string>{"1 Mamba2 nothing", "2 Mamba module", "3 mamba_ssm unknown",
                                            "4 RMSNorm nothing", "5 selective_scan_fn module",
                                            "5 selective_scan_ref nothing"}));
}

// The first line that uses `fast_cuda` whatever became of its import in line 2; 0 for none.
unsigned used_at(const std::string& rest, const std::string& handler = "    pass\n") {
  const std::string source = "try:\n    import fast_cuda\nexcept ImportError:\n" + handler + rest;
  const auto uses = unguarded_uses(source, {"fast_cuda"});
  return uses.contains(2) ? uses.at(2) : 999;
}

TEST(UnguardedUses, AreThoseThatNothingAsksBefore) {
  EXPECT_EQ(used_at("def f(x):\n    y = x + 1\n    return fast_cuda.fwd(y)\n"), 7u);
  EXPECT_EQ(used_at("class A:\n    def f(x):\n        fast_cuda.fwd(x)\n"), 7u);
  EXPECT_EQ(used_at("def f(x):\n    for i in x:\n        fast_cuda.fwd(i)\n"), 7u);
  EXPECT_EQ(used_at("def f(x):\n    return fast_cuda.fwd(x)\n", "    fast_cuda = None\n"), 6u);
}

TEST(UnguardedUses, AreNotClaimedWhereSomethingAsks) {
  for (const char* guarded : {
           "def f(x):\n    if OK:\n        fast_cuda.fwd(x)\n",
           "def f(x):\n    if OK: fast_cuda.fwd(x)\n",
           "def f(x):\n    return fast_cuda.fwd(x) if OK else slow(x)\n",
           "def f(x):\n    return OK and fast_cuda.fwd(x)\n",
           "def f(x):\n    try:\n        fast_cuda.fwd(x)\n    except NameError:\n        slow(x)\n",
           "def f(x):\n    if not OK:\n        return slow(x)\n    fast_cuda.fwd(x)\n",
           "def f(x):\n    assert OK\n    fast_cuda.fwd(x)\n",
           "def need():\n    if not OK:\n        raise RuntimeError\ndef f(x):\n    need()\n    "
           "fast_cuda.fwd(x)\n",
           "if OK:\n    def f(x):\n        fast_cuda.fwd(x)\n",
           "if OK:\n    class A:\n        def f(x):\n            fast_cuda.fwd(x)\n",
           "fast_cuda.fwd(1)\n",
           "def f(fast_cuda):\n    fast_cuda.fwd(1)\n",
           "def f(x):\n    other.fast_cuda.fwd(x)\n",
           "import slow as fast_cuda\ndef f(x):\n    fast_cuda.fwd(x)\n",
           "fast_cuda = slow\ndef f(x):\n    fast_cuda.fwd(x)\n",
           "def f(x):\n    with suppress(NameError):\n        fast_cuda.fwd(x)\n",
           "'''\ndef f(x):\n    fast_cuda.fwd(x)\n'''\n",
       })
    EXPECT_EQ(used_at(guarded), 0u) << guarded;
  EXPECT_EQ(used_at("def f(x):\n    fast_cuda.fwd(x)\n", "    fast_cuda = slow\n"), 0u);
  EXPECT_EQ(used_at("def f(x):\n    fast_cuda.fwd(x)\n", "    import slow as fast_cuda\n"), 0u);
}

TEST(UnguardedUses, FollowTheNameThatTheImportBinds) {
  const std::string source =
      "try:\n  import fast_cuda as c\nexcept ImportError:\n  c = None\ndef f(x):\n  c.fwd(x)\ndef g(x):\n  "
      "fast_cuda.fwd(x)\n";
  EXPECT_EQ(unguarded_uses(source, {"fast_cuda"}).at(2), 6u);
}

TEST(UnguardedUses, EndOnHostileText) {
  for (const std::string text : {"try:\n  import fast_cuda", "import fast_cuda as",
                                 "try: import fast_cuda\nexcept: (((", "\tdef\n import fast_cuda\n"})
    (void)unguarded_uses(text, {"fast_cuda"});
}

}  // namespace
}  // namespace scankit::probes
