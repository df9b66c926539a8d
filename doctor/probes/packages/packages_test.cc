// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/packages.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "doctor/probes/imports/importers.h"
#include "doctor/probes/imports/observed_packages.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_test_host.h"

namespace scankit {
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
}  // namespace scankit
