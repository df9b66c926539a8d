// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/importers_scan.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

using namespace std::string_view_literals;  // literals that hold NULs

std::string scanned(const std::string& source) {
  std::string text;
  for (const ImportLine& each : scan_imports(source, {"selective_scan_cuda", "causal_conv1d_cuda"}))
    text += std::to_string(each.line) + " " + each.module + " " + (each.caught.empty() ? "-" : each.caught) +
            " " + (each.masked_value.empty() ? "-" : each.masked_value) + "\n";
  return text;
}

TEST(ImportersScan, ReadsTheFormsOfImport) {
  EXPECT_EQ(scanned("import os, selective_scan_cuda as ssc\n"), "1 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("from selective_scan_cuda import (\n  fwd,\n  bwd)\n"), "1 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("import selective_scan_cuda.inner"), "1 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("x = importlib.import_module('causal_conv1d_cuda')\n"), "1 causal_conv1d_cuda - -\n");
  EXPECT_EQ(scanned("def f():\n\timport selective_scan_cuda\n"), "2 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("import \\\n  selective_scan_cuda\n"), "1 selective_scan_cuda - -\n");
}

TEST(ImportersScan, ReadsNoTextThatOnlyLooksLikeOne) {
  EXPECT_EQ(scanned("# import selective_scan_cuda\n"), "");
  EXPECT_EQ(scanned("\"\"\"\nimport selective_scan_cuda\n\"\"\"\n"), "");
  EXPECT_EQ(scanned("x = f(a,\n  'import selective_scan_cuda')\n"), "");
  EXPECT_EQ(scanned("import selective_scan_cuda_oflex\nimport my_selective_scan_cuda\n"), "");
  EXPECT_EQ(scanned("name = 'selective_scan_cuda'  # a quote \" here\nimported = selective_scan_cuda\n"), "");
}

// mamba_ssm/ops/selective_scan_interface.py of 2.2.4, shortened.
TEST(ImportersScan, TellsWhatAGuardMakesOfTheName) {
  EXPECT_EQ(scanned("try:\n    from causal_conv1d import causal_conv1d_fn\n    import causal_conv1d_cuda\n"
                    "except ImportError:\n    causal_conv1d_fn = None\n    causal_conv1d_cuda = None\n\n"
                    "import selective_scan_cuda\n"),
            "3 causal_conv1d_cuda ImportError None\n8 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("try:\n  import selective_scan_cuda as s\nexcept (ModuleNotFoundError, ImportError) as "
                    "e:\n  s = t = False\n"),
            "2 selective_scan_cuda ImportError False\n");
  EXPECT_EQ(
      scanned("try:\n  from selective_scan_cuda import fwd, bwd\nexcept Exception:\n  fwd, bwd = None, 0\n"),
      "2 selective_scan_cuda Exception None\n");
  EXPECT_EQ(scanned("try: import selective_scan_cuda\nexcept: selective_scan_cuda = None\n"),
            "1 selective_scan_cuda everything None\n");
  EXPECT_EQ(scanned("try:\n  import selective_scan_cuda\nexcept ModuleNotFoundError:\n  pass\n"),
            "2 selective_scan_cuda ModuleNotFoundError -\n");
}

TEST(ImportersScan, GuardsThatDoNotHide) {
  EXPECT_EQ(
      scanned(
          "try:\n  import selective_scan_cuda\nexcept ImportError as e:\n  raise RuntimeError('x') from e\n"),
      "2 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("try:\n  import selective_scan_cuda\nexcept KeyError:\n  pass\nfinally:\n  x = 1\n"),
            "2 selective_scan_cuda - -\n");
  // A fallback stands in the handler, which is not guarded by its own try.
  EXPECT_EQ(scanned("try:\n  import oflex\nexcept ImportError:\n  import selective_scan_cuda\n"),
            "4 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("try:\n  def f():\n    import selective_scan_cuda\nexcept ImportError:\n  pass\n"),
            "3 selective_scan_cuda - -\n");
}

TEST(ImportersScan, LooksOutwardsForTheGuard) {
  EXPECT_EQ(
      scanned(
          "try:\n  if cuda:\n    try:\n      import selective_scan_cuda\n    except KeyError:\n      pass\n"
          "except ImportError:\n  selective_scan_cuda = None\n"),
      "4 selective_scan_cuda ImportError None\n");
}

TEST(ImportersScan, SurvivesBytesThatAreNoPython) {
  const std::string name = "import selective_scan_cuda\n";
  EXPECT_EQ(scanned(name + std::string(100000, '(') + "\n" + name), "1 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("'''" + name), "");
  EXPECT_EQ(scanned(std::string("\0\xff\xfe try:\n"sv) + name), "2 selective_scan_cuda - -\n");
  EXPECT_EQ(scanned("except" + std::string(200000, ' ') + name), "");
}

}  // namespace
}  // namespace scankit
