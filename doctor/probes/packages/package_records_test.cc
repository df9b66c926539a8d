// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/base/version.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class PackageRecords : public PythonTree {
 protected:
  PackageRecords() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages/";
    host_.variables["PYTHONSAFEPATH"] = "1";
  }
  void install_package(const std::string& name, const std::string& version,
                       const std::string& requires_dist = "", const std::string& record = "",
                       const std::string& tag = "py3-none-any") {
    const std::string info = site_ + name + "-" + version + ".dist-info/";
    write(info + "METADATA",
          "Metadata-Version: 2.4\nName: " + name + "\nVersion: " + version + "\n" + requires_dist);
    write(info + "WHEEL", "Wheel-Version: 1.0\nTag: " + tag + "\n");
    write(info + "RECORD", record);
  }
  Packages read() {
    Snapshot snapshot;
    snapshot.modules = {"selective_scan_cuda"};
    snapshot.python = probe_python(host_, at("venv"));
    EXPECT_TRUE(snapshot.python.present()) << snapshot.python.note;
    snapshot.distributions = probe_distributions(host_, snapshot.python.value);
    snapshot.importers = probe_importers(host_, snapshot.python.value, snapshot.modules);
    return probe_packages(host_, snapshot).value;
  }
  std::string site_;
};

// The words of upstream's message since July 2026 (state-spaces/mamba, commit f577286d), not its sentence.
constexpr const char* kOptIn =
    "try:\n    import selective_scan_cuda\nexcept ImportError:\n    selective_scan_cuda = None\n\n"
    "WORDS = 'set MAMBA_KEEP_CUDA_BUILD=TRUE'\n";

TEST_F(PackageRecords, TellAReleaseThatLeavesItsModuleOut) {
  write(site_ + "mamba_ssm/__init__.py", kOptIn);
  install_package("mamba_ssm", "2.3.3", "", "mamba_ssm/__init__.py,,\nmamba_ssm/selective_scan_cuda.txt,,\n");
  const Packages packages = read();
  ASSERT_EQ(packages.builds.size(), 1u);
  const PackageBuild& build = packages.builds[0];
  EXPECT_EQ(build.module, "selective_scan_cuda");
  EXPECT_EQ(build.tags, std::vector<std::string>{"py3-none-any"});
  EXPECT_FALSE(build.lists_module);
  EXPECT_EQ(build.opt_in, "MAMBA_KEEP_CUDA_BUILD");
  EXPECT_EQ(build.line, 6u);
}

TEST_F(PackageRecords, TellABuildWithTheModule) {
  write(site_ + "mamba_ssm/__init__.py", kOptIn);
  install_package("mamba_ssm", "2.3.3", "", "selective_scan_cuda.cpython-311-x86_64-linux-gnu.so,,\n",
                  "cp311-cp311-linux_x86_64");
  EXPECT_TRUE(read().builds.at(0).lists_module);
}

// Releases up to 2.3.2.post1 build it unless SKIP says otherwise; their variables ask for nothing.
TEST_F(PackageRecords, KnowNoSwitchOfAnOlderRelease) {
  write(site_ + "mamba_ssm/__init__.py",
        "import selective_scan_cuda\nA = 'MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE'\n");
  install_package("mamba_ssm", "2.3.1");
  EXPECT_EQ(read().builds.at(0).opt_in, "");
}

TEST_F(PackageRecords, NameWhatIsInstalledInAnotherRelease) {
  write(site_ + "mamba_ssm/__init__.py", "import selective_scan_cuda\n");
  install_package(
      "mamba_ssm", "2.3.3",
      "Requires-Dist: tilelang==0.1.8\nRequires-Dist: apache-tvm-ffi<=0.1.12\nRequires-Dist: triton>=3.5.0\n"
      "Requires-Dist: absent>3\nRequires-Dist: pytest>=9; extra == \"dev\"\nRequires-Dist: torch\n");
  install_package("tilelang", "0.1.8",
                  "Requires-Dist: apache-tvm-ffi~=0.1.0,>=0.1.2\nRequires-Dist: deep>=1\n");
  install_package("apache_tvm_ffi", "0.1.15.post2", "Requires-Dist: deeper>=2\n");
  install_package("triton", "3.4.0");
  install_package("pytest", "8.0");
  install_package("torch", "2.11.0", "Requires-Dist: deep>=2\n");
  install_package("deep", "1.0", "Requires-Dist: deeper>=3\n");
  install_package("deeper", "2.0");
  std::vector<std::string> said;
  for (const UnmetRequirement& each : read().unmet)
    said.push_back(each.distribution + ": " + each.requirement + ", " + each.name + " " + each.installed);
  EXPECT_EQ(said, (std::vector<std::string>{"mamba_ssm: apache-tvm-ffi<=0.1.12, apache_tvm_ffi 0.1.15.post2",
                                            "mamba_ssm: triton>=3.5.0, triton 3.4.0"}));
}

TEST_F(PackageRecords, NameTwoOwnersOfOnePackage) {
  write(site_ + "mamba_ssm/__init__.py", "import selective_scan_cuda\n");
  write(site_ + "triton/__init__.py", "");
  const std::string record = "triton/__init__.py,sha256=x,3\n";
  install_package("triton", "3.6.0", "", record);
  install_package("triton_model_analyzer", "1.0", "", "model_analyzer/triton/__init__.py,,\n");
  EXPECT_TRUE(read().shared.empty());
  install_package("pytorch_triton", "3.5.0", "", record);
  const auto shared = read().shared;
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].file, at(site_ + "triton/__init__.py"));
  EXPECT_EQ(shared[0].owners, (std::vector<std::string>{"pytorch_triton", "triton"}));
  EXPECT_EQ(shared[0].hidden, "");
}

// nvidia-cutlass-dsl is found by a .pth line, after the site-packages folder itself.
TEST_F(PackageRecords, NameACopyThatHidesAnother) {
  write(site_ + "mamba_ssm/__init__.py", "import selective_scan_cuda\n");
  write("dsl/cutlass/__init__.py", "");
  write(site_ + "dsl.pth", at("dsl") + "\n");
  EXPECT_TRUE(read().shared.empty());
  write(site_ + "cutlass/__init__.py", "");
  const auto shared = read().shared;
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].file, at(site_ + "cutlass/__init__.py"));
  EXPECT_EQ(shared[0].hidden, at("dsl/cutlass/__init__.py"));
}

TEST(Specifiers, AreThoseOfPep440) {
  for (const auto& [installed, specifier] :
       std::vector<std::pair<std::string, std::string>>{{"0.1.8", "==0.1.8"},
                                                        {"0.1.8+cu13", "==0.1.8"},
                                                        {"13.2.86", "==13.2.*"},
                                                        {"0.1.9", "~=0.1.0"},
                                                        {"0.1.12", ">=0.1.2,<0.2"},
                                                        {"2.0.post1", ">2.0"},
                                                        {"1.0", "!=1.1"},
                                                        {"1.0", "===anything"},
                                                        {"1.0", ""},
                                                        {"unreadable", ">=1"},
                                                        {"2.9", "<2.11"}})
    EXPECT_TRUE(meets(installed, specifier)) << installed << " " << specifier;
  for (const auto& [installed, specifier] :
       std::vector<std::pair<std::string, std::string>>{{"0.1.15", "==0.1.8"},
                                                        {"0.1.15.post2", "<=0.1.12"},
                                                        {"0.2.0", "~=0.1.0"},
                                                        {"3.5.0rc1", ">=3.5.0"},
                                                        {"1.1", "!=1.1"},
                                                        {"1.1.2", "!=1.1.*"},
                                                        {"2.11", "<2.9"}})
    EXPECT_FALSE(meets(installed, specifier)) << installed << " " << specifier;
}

}  // namespace
}  // namespace scankit::probes
