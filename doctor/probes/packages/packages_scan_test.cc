// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/packages_scan.h"

#include <gtest/gtest.h>

#include "doctor/probes/packages/packages_install.h"
#include "doctor/probes/packages/packages_names.h"

namespace scankit {
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
}  // namespace scankit
