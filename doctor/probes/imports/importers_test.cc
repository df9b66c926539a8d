// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/importers.h"

#include <gtest/gtest.h>

#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class Importers : public PythonTree {
 protected:
  Importers() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages/";
    host_.variables["PYTHONSAFEPATH"] = "1";  // the tests' own current folder stays out of it
  }
  Probed<std::vector<Importer>> probe(const std::vector<std::string>& modules = {"selective_scan_cuda"}) {
    const auto python = probe_python(host_, at("venv"));
    EXPECT_TRUE(python.present()) << python.note;
    return probe_importers(host_, python.value, modules);
  }
  std::string site_;
};

TEST_F(Importers, ReadsKnownPackagesWithTheirVersion) {
  write(site_ + "mamba_ssm/__init__.py", "");
  write(site_ + "mamba_ssm/ops/interface.py", "import os\n\nimport selective_scan_cuda\n");
  write(site_ + "mamba_ssm/ops/__pycache__/x.py", "import selective_scan_cuda\n");
  write(site_ + "mamba_ssm-2.2.4.dist-info/METADATA", "Name: mamba-ssm\n");
  write(site_ + "unrelated/__init__.py", "import selective_scan_cuda\n");
  const auto probed = probe();
  ASSERT_TRUE(probed.present()) << probed.note;
  ASSERT_EQ(probed.value.size(), 1u);
  EXPECT_EQ(probed.value[0].package, "mamba_ssm");
  EXPECT_EQ(probed.value[0].version, "2.2.4");
  EXPECT_EQ(probed.value[0].file, at(site_ + "mamba_ssm/ops/interface.py"));
  EXPECT_EQ(probed.value[0].line, 3u);
  EXPECT_FALSE(probed.value[0].masked);
}

TEST_F(Importers, ReadsPackagesThatCameWithTheModule) {
  write(site_ + "own_ext-0.3.dist-info/top_level.txt", "own_cuda\nown_package\n");
  write(site_ + "own_package/__init__.py",
        "try:\n  import own_cuda\nexcept ImportError:\n  own_cuda = None\n");
  const auto probed = probe({"own_cuda"});
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_EQ(probed.value.at(0).version, "0.3");
  EXPECT_TRUE(probed.value[0].masked);
  EXPECT_EQ(probed.value[0].masked_value, "None");
}

TEST_F(Importers, ReadsSingleFilesAndEditableProjects) {
  write(site_ + "single.py", "import selective_scan_cuda\n");
  write(site_ + "setup.py", "import selective_scan_cuda\n");
  write(site_ + "mamba.pth", at("src") + "\n");
  write("src/mamba_ssm/__init__.py", "import selective_scan_cuda\n");
  const auto probed = probe();
  ASSERT_EQ(probed.value.size(), 2u);
  EXPECT_EQ(probed.value[0].file, at("src/mamba_ssm/__init__.py"));
  EXPECT_EQ(probed.value[1].package, "single");
}

TEST_F(Importers, AbsenceSaysWhatWasRead) {
  write(site_ + "six.py", "import os\n");
  const auto probed = probe();
  EXPECT_EQ(probed.state, ProbeState::Absent);
  EXPECT_NE(probed.note.english().find("1 files of known packages"), std::string::npos) << probed.note;
}

TEST_F(Importers, StopsAtItsLimits) {
  for (int i = 0; i < 1600; ++i) write(site_ + "mamba_ssm/f" + std::to_string(i) + ".py", "");
  write(site_ + "mamba_ssm/__init__.py", "");
  write(site_ + "mamba_ssm/zz.py", std::string(2u << 20, '#'));
  link("..", site_ + "mamba_ssm/loop");
  const auto probed = probe();
  EXPECT_EQ(probed.state, ProbeState::Failed);
  EXPECT_NE(probed.note.english().find("the limit was reached"), std::string::npos) << probed.note;
}

// Python's own modules and those that are known not to import torch bring none; a package of which nothing is
// known may.
TEST_F(Importers, KnowWhatStandsBeforeTorch) {
  write(site_ + "numpy/__init__.py", "");
  write(site_ + "helper/__init__.py", "import torch\n");
  write(site_ + "first.py", "import sys\nimport numpy as np\nimport selective_scan_cuda\nimport torch\n");
  write(site_ + "second.py", "import torch\nimport selective_scan_cuda\n");
  write(site_ + "third.py", "import helper\nimport selective_scan_cuda\n");
  write(site_ + "mamba_ssm/__init__.py", "from . import ops\n");
  write(site_ + "mamba_ssm/ops.py", "import selective_scan_cuda\n");
  const auto probed = probe();
  ASSERT_EQ(probed.value.size(), 4u);
  for (const Importer& importer : probed.value)
    EXPECT_EQ(importer.before_torch, importer.package == "first") << importer.file;
}

class PackageImporters : public Importers {
 protected:
  std::vector<Importer> programs() {
    host_.variables["PYTHONPATH"] = at("project");
    const auto python = probe_python(host_, at("venv"));
    const auto found = probe_package_importers(host_, python.value);
    EXPECT_TRUE(found.present()) << found.note;
    return found.value;
  }
};

TEST_F(PackageImporters, AreProgramsThatWantWhatIsNotThere) {
  write("project/train.py", "import torch\nfrom mamba_ssm import Mamba\n");
  write("project/guarded.py",
        "try:\n    import causal_conv1d\nexcept ImportError:\n    causal_conv1d = None\n");
  write("project/setup.py", "import mamba_ssm\n");
  write("project/deeper/more.py", "import mamba_ssm\n");
  const auto found = programs();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].masked);
  EXPECT_EQ(found[1].module, "mamba_ssm");
  EXPECT_EQ(found[1].file, at("project/train.py"));
  EXPECT_EQ(found[1].line, 2u);
}

TEST_F(PackageImporters, OfWhatIsInstalledAreNone) {
  write("project/train.py", "import mamba_ssm\n");
  write(site_ + "mamba_ssm/__init__.py", "");
  EXPECT_TRUE(programs().empty());
}

TEST_F(Importers, UnreadableSitePackagesAreNotAbsence) {
  host_.denied = {at("venv/lib/python3.11/site-packages")};
  EXPECT_EQ(probe().state, ProbeState::Failed);
}

}  // namespace

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

}  // namespace scankit::probes
