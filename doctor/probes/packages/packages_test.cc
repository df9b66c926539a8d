// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/packages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "doctor/probes/imports/importers.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class PackagesOf : public PythonTree {
 protected:
  PackagesOf() {
    make_venv("venv", install("base"));
    host_.variables["PYTHONSAFEPATH"] = "1";  // the tests' own current folder stays out of it
  }
  Snapshot snapshot() {
    Snapshot taken;
    taken.modules = {"selective_scan_cuda", "causal_conv1d_cuda"};
    taken.python = probe_python(host_, at("venv"));
    EXPECT_TRUE(taken.python.present()) << taken.python.note;
    taken.distributions = probe_distributions(host_, taken.python.value);
    taken.importers = probe_importers(host_, taken.python.value, taken.modules);
    taken.packages = probe_packages(host_, taken);
    return taken;
  }
  const std::string site_ = "venv/lib/python3.11/site-packages/";
};

const PackageImport* import_of(const Snapshot& snapshot, const std::string& target, const std::string& name) {
  const auto& all = snapshot.packages.value.imports;
  const auto found = std::ranges::find_if(
      all, [&](const PackageImport& each) { return each.target == target && each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

TEST_F(PackagesOf, SaysWhatASiblingDoesNotOffer) {
  write(site_ + "mamba_ssm/__init__.py", "from mamba_ssm.ops import f\nfrom .slow import g\n");
  write(
      site_ + "mamba_ssm/ops.py",
      "try:\n    from causal_conv1d import one\n    from causal_conv1d.cpp import two\nexcept ImportError:\n"
      "    one, two = None, None\nimport causal_conv1d_cuda\ndef f():\n    two(1, 2)\n"
      "    causal_conv1d_cuda.fwd(1, 2, 3)\n");
  write(site_ + "mamba_ssm/slow.py", "def g():\n    from causal_conv1d import three\n");
  write(site_ + "causal_conv1d/__init__.py", "from .interface import one\n");
  write(site_ + "causal_conv1d/interface.py", "def one(a, b=1): pass\n");
  const Snapshot taken = snapshot();
  ASSERT_TRUE(taken.packages.present()) << taken.packages.note;
  const PackageImport* one = import_of(taken, "causal_conv1d", "one");
  const PackageImport* two = import_of(taken, "causal_conv1d.cpp", "two");
  const PackageImport* three = import_of(taken, "causal_conv1d", "three");
  ASSERT_TRUE(one != nullptr && two != nullptr && three != nullptr);
  EXPECT_EQ(one->offered, "yes");
  EXPECT_EQ(two->offered, "no");
  EXPECT_EQ(two->masked_value, "None");
  EXPECT_EQ(two->called_at, 8u);
  EXPECT_TRUE(two->reached);
  EXPECT_EQ(three->when, "call");
  EXPECT_EQ(import_of(taken, "causal_conv1d_cuda", "")->offered, "module");
  EXPECT_EQ(with_called_names(taken, "causal_conv1d_cuda"), "causal_conv1d_cuda:fwd");
  const auto tasks = package_imports(taken, true);
  const std::vector<std::string> expected = {"?mamba_ssm", "torch", "?causal_conv1d:one,three",
                                             "?causal_conv1d.cpp:two"};
  EXPECT_TRUE(std::ranges::find(tasks, expected) != tasks.end());
}

// Files that `import` does not come to are nobody's way: they are loaded by those alone who name them.
TEST_F(PackagesOf, KnowsWhatAnImportRuns) {
  write(site_ + "mamba_ssm/__init__.py",
        "from .sure import x\ntry:\n    from .perhaps import y\nexcept ImportError:\n    y = None\n");
  for (const char* file : {"sure", "perhaps", "never"})
    write(site_ + "mamba_ssm/" + file + ".py", std::string("from causal_conv1d import ") + file + "\n");
  const Snapshot taken = snapshot();
  const auto loads = [&](const char* name) {
    const PackageImport* import = import_of(taken, "causal_conv1d", name);
    return import == nullptr ? std::pair(false, false) : std::pair(import->reached, import->loaded);
  };
  EXPECT_EQ(loads("sure"), std::pair(true, true));
  EXPECT_EQ(loads("perhaps"), std::pair(false, true));
  EXPECT_EQ(loads("never"), std::pair(false, false));
  EXPECT_EQ(import_of(taken, "causal_conv1d", "sure")->offered, "absent");
}

TEST_F(PackagesOf, ACopyOnThePathSaysItsOwnRelease) {
  write(site_ + "mamba_ssm/__init__.py", "__version__ = \"2.0\"\n");
  write(site_ + "mamba_ssm-2.0.dist-info/METADATA", "Name: mamba-ssm\nVersion: 2.0\n");
  write("checkout/mamba_ssm/__init__.py", "__version__ = \"1.1.4\"\nimport selective_scan_cuda\n");
  host_.variables["PYTHONPATH"] = at("checkout");
  const Snapshot taken = snapshot();
  ASSERT_EQ(taken.packages.value.found.size(), 1u);
  EXPECT_EQ(taken.packages.value.found[0].version, "1.1.4");
  EXPECT_EQ(taken.packages.value.found[0].path, at("checkout/mamba_ssm"));
}

TEST_F(PackagesOf, AreAbsentWhereNothingUsesTheModules) {
  EXPECT_EQ(snapshot().packages.state, ProbeState::Absent);
}

TEST_F(PackagesOf, TellsAFixThatWasInterrupted) {
  const auto probe = [&] { return probe_repairs(host_, probe_python(host_, at("venv")).value); };
  EXPECT_EQ(probe().state, ProbeState::Absent);
  write("venv/.scankit/journal/0001.json", R"({"schema": 1, "state": "committed", "module": "m"})");
  EXPECT_EQ(probe().state, ProbeState::Absent);
  write("venv/.scankit/journal/0002.json", R"({"schema": 1, "state": "applying", "module": "m"})");
  write("venv/.scankit/lock", "999999999");
  ASSERT_EQ(probe().value.size(), 1u);
  EXPECT_EQ(probe().value[0].state, "applying");
  EXPECT_FALSE(probe().value[0].running);
  write("venv/.scankit/lock", std::to_string(::getpid()));
  EXPECT_TRUE(probe().value[0].running);
  write("venv/.scankit/journal/0002.json", "{\"state\": [");
  ASSERT_EQ(probe().value.size(), 1u);
  EXPECT_EQ(probe().value[0].state, "");
}

// The advice would be to run what a stranger wrote: "`scankit restore` brings back what was there".
TEST_F(PackagesOf, BelievesNoFixThatAnotherCouldHaveWritten) {
  const auto state = [&] {
    return probe_repairs(host_, probe_python(host_, at("venv")).value).value.at(0).state;
  };
  const std::string file = at("venv/.scankit/journal/0001.json"), folder = at("venv/.scankit");
  write("venv/.scankit/journal/0001.json", R"({"schema": 1, "state": "applying", "module": "m"})");
  EXPECT_EQ(state(), "applying");
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  EXPECT_EQ(state(), "");
  std::filesystem::rename(file, at("venv/.scankit/journal/Documents.json"));
  std::filesystem::permissions(at("venv/.scankit/journal/Documents.json"), std::filesystem::perms(0644));
  EXPECT_EQ(state(), "");
  std::filesystem::rename(at("venv/.scankit/journal/Documents.json"), file);
  EXPECT_EQ(state(), "applying");
  std::filesystem::rename(folder, at("elsewhere"));
  std::filesystem::create_directory_symlink(at("elsewhere"), folder);
  EXPECT_EQ(state(), "");
}

}  // namespace

namespace {

std::vector<ScannedCall> calls(const char* source) { return scan_package_file(source, "p.m", false).calls; }
ScannedImport first_import(const char* source, bool is_package = false) {
  return scan_package_file(source, "p.q.m", is_package).imports.at(0);
}

TEST(PackageScan, CountsWhatTheUserWrote) {
  const auto found = calls(
      "import m_cuda\n"
      "y = m_cuda.fwd(a, f(b, c), [d, e],  # one, two\n"
      "               \"x, (y\", key={1: 2},\n"
      ")\n"
      "m_cuda.fwd()\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].callee, "m_cuda.fwd");
  EXPECT_EQ(found[0].arguments, 5);
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[1].arguments, 0);
}

TEST(PackageScan, DoesNotCountWhatItCannotSee) {
  EXPECT_EQ(calls("import m\nm.f(*a, b)\n").at(0).arguments, -1);
  EXPECT_EQ(calls("import m\nm.f(b, **a)\n").at(0).arguments, -1);
  EXPECT_EQ(calls("import m\nm.f(lambda x, y: x)\n").at(0).arguments, -1);
  EXPECT_EQ(calls("import m\nm.f(a * b, c ** d)\n").at(0).arguments, 2);
  EXPECT_EQ(calls("import m\nm.f(a,\n").at(0).arguments, -1);
}

TEST(PackageScan, FollowsNamesAndDropsTheDoubtfulOnes) {
  EXPECT_EQ(calls("from s.cpp import f as g\ng(1)\n").at(0).callee, "s.cpp.f");
  EXPECT_EQ(calls("import a.b as c\nc.f(1)\n").at(0).callee, "a.b.f");
  EXPECT_TRUE(calls("import a as m\nimport b as m\nm.f(1)\n").empty());
  EXPECT_TRUE(calls("import m\nm = other\nm.f(1)\n").empty());
  EXPECT_TRUE(calls("from s import f\ndef f(x): pass\nf(1)\n").size() <= 1);
  EXPECT_EQ(calls("try:\n  from s import f\nexcept ImportError:\n  f = None\nf(1)\n").size(), 1u);
  EXPECT_TRUE(calls("from s import f\ndef g(f):\n  f(1)\n").empty());
  EXPECT_EQ(calls("import t as tl\ndef g(a: tl.x, b=tl.y):\n  tl.f(1)\n").size(), 1u);
  EXPECT_TRUE(calls("\"\"\"\nimport m\nm.f(1)\n\"\"\"\n# m.f(1)\n").empty());
}

TEST(PackageScan, SeesUsesThatNoTestGuards) {
  const auto uses = [](const char* source) {
    std::vector<std::string> names;
    for (const ScannedUse& use : scan_package_file(source, "m", false).uses) names.push_back(use.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(uses("import t.l as tl\n@jit\ndef k(a, B: tl.constexpr):\n  if B:\n    x = tl.math.log1p(a)\n"),
            (Names{"t.l.constexpr", "t.l.math.log1p"}));
  EXPECT_TRUE(
      uses("import t.l as tl\nif TRITON3:\n  pass\nelse:\n  def k(a):\n    return tl.log1p(a)\n").empty());
  EXPECT_TRUE(uses("import t.l as tl\nif hasattr(tl, 'a'):\n  f = tl.a.b\n").empty());
  EXPECT_TRUE(uses("import t.l as tl\ntry:\n  f = tl.a.b\nexcept AttributeError:\n  f = None\n").empty());
  EXPECT_TRUE(uses("import t.l as tl\nf = tl.a.b if hasattr(tl, 'a') else 0\n").empty());
  EXPECT_EQ(uses("import t.l as tl\nif IS_TRITON_22:\n  pass\nf = tl.a.b\n"), Names{"t.l.a.b"});
}

TEST(PackageScan, KnowsWhenAnImportRuns) {
  EXPECT_EQ(first_import("import m\n").when, "import");
  EXPECT_EQ(first_import("try:\n  import m\nexcept ImportError:\n  pass\n").when, "import");
  EXPECT_EQ(first_import("if TYPE_CHECKING:\n  import m\n").when, "conditional");
  EXPECT_EQ(first_import("if x: import m\n").when, "conditional");
  EXPECT_EQ(first_import("def f():\n  if x:\n    import m\n").when, "call");
  EXPECT_EQ(first_import("class A:\n  import m\n").when, "import");
  EXPECT_EQ(first_import("if x:\n  pass\nimport m\n").when, "import");
}

TEST(PackageScan, ResolvesRelativeImports) {
  EXPECT_EQ(first_import("from .a import b\n").target, "p.q.a");
  EXPECT_EQ(first_import("from ..a import b\n").target, "p.a");
  EXPECT_EQ(first_import("from . import b\n").target, "p.q");
  EXPECT_EQ(first_import("from .a import b\n", true).target, "p.q.m.a");
}

TEST(PackageScan, SeesHowANameIsAskedFor) {
  EXPECT_EQ(first_import("from s import f\nassert f is not None\nf(1)\n").tested, "assert");
  EXPECT_EQ(first_import("from s import f\nif f is None:\n  pass\nf(1)\n").tested, "if");
  EXPECT_EQ(first_import("from s import f\nf(1)\n").tested, "");
  EXPECT_EQ(first_import("from s import f\n\nf(1)\n").called_at, 3u);
}

TEST(PackageScan, CountsParameters) {
  const auto function = [](const char* source) { return scan_package_file(source, "m", false).functions; };
  EXPECT_EQ(function("def f(a, b: Optional[int] = None, *, c=1):\n  pass\n").at(0).least, 1);
  EXPECT_EQ(function("def f(a, b: Dict[str, int] = None, *, c=1):\n  pass\n").at(0).most, 3);
  EXPECT_EQ(function("def f(a, *rest):\n  pass\n").at(0).most, -1);
  EXPECT_EQ(function("def f() -> int:\n  pass\n").at(0).most, 0);
  EXPECT_TRUE(function("@wraps\ndef f(a):\n  pass\n").empty());
  EXPECT_TRUE(function("def f(a):\n  pass\ndef f(a, b):\n  pass\n").empty());
  EXPECT_TRUE(function("def f(a):\n  pass\nif x:\n  def f(a, b):\n    pass\n").empty());
  EXPECT_TRUE(function("def f(a):\n  pass\nf = wrapped(f)\n").empty());
}

TEST(PackageScan, TakesAnyBytes) {
  std::string noise;
  for (unsigned i = 0; i < 60000; ++i) noise += static_cast<char>((i * 2654435761u) >> 24);
  (void)scan_package_file(noise, "m", false);
  (void)scan_package_file("from", "m", false);
  (void)scan_package_file("import", "m", false);
  (void)scan_package_file("from . import", "", true);
  (void)scan_package_file("def", "m", false);
  (void)scan_package_file(std::string(100000, '('), "m", false);
}

TEST(BinaryTexts, CountPybindArguments) {
  using std::string_view_literals::operator""sv;
  const std::string data(
      "x\0({torch.Tensor}, {Optional[torch.Tensor]}, {bool}) -> torch.Tensor\0() -> None\0"sv);
  EXPECT_EQ(binary_texts(data).arguments, (std::vector<unsigned>{0, 3}));
  EXPECT_FALSE(binary_texts(data).defaults);
  EXPECT_TRUE(binary_texts(std::string_view("\0(*args, **kwargs) -> None\0", 27)).open_ended);
  EXPECT_TRUE(binary_texts("usage: (a, b) -> c").arguments.empty());
  EXPECT_TRUE(binary_texts(std::string_view("\0({object}) -> None\0", 20)).arguments.empty());
}

TEST(BinaryTexts, FindTheFolderOfAnIsolatedBuild) {
  const std::string data("\0/tmp/pip-build-env-2wm1/overlay/lib/python3.10/site-packages/torch/x.h\0", 72);
  EXPECT_EQ(binary_texts(data).build_trace,
            "/tmp/pip-build-env-2wm1/overlay/lib/python3.10/site-packages/torch/x.h");
}

TEST(Names, AreWordsOfTheirOwn) {
  EXPECT_TRUE(has_word("from a import Name, x", "Name"));
  EXPECT_FALSE(has_word("from a import NameLonger, xName", "Name"));
}

}  // namespace

}  // namespace scankit::probes
