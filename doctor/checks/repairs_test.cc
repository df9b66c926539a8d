// SPDX-License-Identifier: Apache-2.0
// Over all cases: whoever is told of a fault is told what to do.
#include "doctor/checks/repairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "doctor/checks/recorded_cases.h"
#include "doctor/knowledge/faults.h"
#include "doctor/report/fixes.h"

namespace scankit::checks {
namespace {

// Findings that no command repairs: the check and the cause, and why. The advice says what a person would do.
constexpr const char* kDriver =
    "a driver is the administrator's, and every distribution has a way of its own";
constexpr const char* kOutside = "a container gets its GPUs and libraries from outside";
constexpr const char* kNoRelease = "no table says which releases belong together";
constexpr const char* kOtherFile = "no table says where a matching file is available";
const std::map<std::pair<std::string, std::string>, std::string> kNoCommand = {
    {{"*", "torch_not_imported_first"}, "the line is missing in the user's own program"},
    {{"*", "required_missing"}, "the name of a module is not always that of the package that provides it"},
    {{"torch_has_cuda", "rocm_torch"}, "a package for ROCm is built in a way of its own"},
    {{"*", "system_library_missing"}, "a package of the system takes root"},
    {{"active_environment_usable", "environment_python_gone"},
     "the sentence and the page's last line hold it"},
    {{"build_fits_disk", "disk_full"}, "what may go of a disk is its owner's to say"},
    {{"call_signatures_match", "signature_mismatch"}, kNoRelease},
    {{"driver_new_enough", "driver_too_old"}, kDriver},
    {{"driver_parts_match", "nvml_mismatch"}, kDriver},
    {{"every_extension_loads", "torch_version_mismatch"}, kNoRelease},
    {{"every_extension_loads", "missing_cudart"}, kNoRelease},
    {{"import_observed", "torch_version_mismatch"}, kNoRelease},
    {{"file_is_whole", "several_copies"}, "which of the leftovers may go is their owner's to say"},
    {{"gpu_arch_covered", "no_kernel_image"}, "another build of torch is a choice of release and index"},
    {{"gpu_arch_covered", "num_arch_miscompile"}, "nothing is proven wrong"},
    {{"gpus_sound", "gpu_hardware_fault"}, "a reset takes root and an idle GPU"},
    {{"python_headers_found", "python_headers_missing"},
     "each distribution has a package and a command of its own"},
    {{"siblings_offer_names", "silent_none_causal_conv1d"}, kNoRelease},
    {{"sources_complete", "sdist_missing_csrc"}, kOtherFile},
    {{"torch_api_present", "torch_api_removed_in_source"}, kNoRelease},
    {{"libcuda_usable", "no_driver_libcuda"}, kOutside},
    {{"log_explained", "no_kernel_image"}, "the log is of a machine that is not here"},
    {{"pybind_internals_agree", "pybind_internals_mismatch"}, kNoRelease},
    {{"python_tag_fits", "several_copies"}, "which of the leftovers may go is their owner's to say"},
    {{"packages_installed_once", "package_overwritten"},
     "which of the owners is meant is their installer's to say"},
    {{"single_copy", "several_copies"}, "which of the copies is meant is their owner's to say"},
    {{"wheel_fits", "glibc_too_old"}, kOtherFile},
    {{"wheel_fits", "python_abi_tag_mismatch"}, kOtherFile},
    {{"wheel_fits", "wrong_machine_arch"}, kOtherFile},
};

bool has_command(const Finding& finding, const Snapshot& snapshot) {
  return std::ranges::any_of(finding.fixes,
                             [&](const Fix& fix) { return !report::fix_command(fix, snapshot).empty(); });
}

// An advice that ends in the line to type: "...: MAX_JOBS=2 pip install ...".
bool advises_a_command(const Finding& finding) {
  return std::ranges::any_of(finding.fixes, [](const Fix& fix) {
    const auto* advice = std::get_if<Advice>(&fix);
    if (advice == nullptr) return false;
    return std::ranges::any_of(
        std::array{"pip install", "uv pip", "cmake -S", "export ", "scankit ", "ldconfig"},
        [&](const char* word) { return advice->text.english().find(word) != std::string::npos; });
  });
}

bool is_withdrawn(const Finding& finding) {
  return finding.summary.english().find(" - withdrawn: ") != std::string::npos;
}

TEST(Repairs, ComeWithEveryFinding) {
  for (const std::string& name : case_names()) {
    const Report report = diagnosed(case_file(name));
    for (const Finding& finding : report.findings) {
      if (is_withdrawn(finding)) continue;
      EXPECT_FALSE(finding.fixes.empty())
          << name << ": " << info(finding.cause).slug << ": " << finding.summary;
      for (const Fix& fix : finding.fixes) EXPECT_NE(report::fix_sentence(fix), "") << name;
    }
  }
}

TEST(Repairs, AreCommandsWhereAProgramCanDoIt) {
  std::set<std::pair<std::string, std::string>> without;
  for (const std::string& name : case_names()) {
    const Report report = diagnosed(case_file(name));
    for (const Finding& finding : report.findings) {
      if (is_withdrawn(finding) || has_command(finding, report.snapshot) || advises_a_command(finding))
        continue;
      const std::string slug(info(finding.cause).slug);
      const std::pair<std::string, std::string> here{name.substr(0, name.find('.')), slug},
          anywhere{"*", slug};
      without.insert(kNoCommand.contains(anywhere) ? anywhere : here);
      EXPECT_TRUE(kNoCommand.contains(anywhere) || kNoCommand.contains(here))
          << name << ": " << slug << ": "
          << (finding.fixes.empty() ? "" : report::fix_sentence(finding.fixes.front()));
    }
  }
  for (const auto& [where, why] : kNoCommand)
    EXPECT_TRUE(without.contains(where)) << where.first << " " << where.second << " has a command: " << why;
}

std::vector<std::string> commands_where_conda_installed_it(const std::string& name) {
  auto test = case_file(name);
  test["at"]["/python/value/kind"] = "conda";
  test["at"]["/extensions/value/0/distribution"] = "mine";
  test["at"]["/distributions/value/0"] = {
      {"name", "mine"},    {"version", "1.0"}, {"path", "/p/lib/mine-1.0.dist-info"}, {"installer", "conda"},
      {"editable", false}, {"project", ""},    {"conda_channel", "conda-forge"}};
  std::vector<std::string> commands;
  const Report report = diagnosed(test);
  for (const Fix& fix : report.findings.at(0).fixes)
    commands.push_back(report::fix_command(fix, report.snapshot));
  return commands;
}

// pip would build from source what conda holds a record of. A damaged file comes back; a build for another
// torch would only come again.
TEST(Repairs, OfWhatCondaInstalledAreNotPips) {
  const auto damaged = commands_where_conda_installed_it("file_is_whole.html");
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_TRUE(damaged[0].starts_with("scankit ")) << damaged[0];
  EXPECT_EQ(damaged[1], "conda install --prefix /home/user/project/.venv --force-reinstall mine=1.0");
  const auto unfit = commands_where_conda_installed_it("torch_symbols_resolve.dated");
  ASSERT_EQ(unfit.size(), 1u);
  EXPECT_TRUE(unfit[0].starts_with("scankit ")) << unfit[0];
}

// What the build needs must come into the same environment, from the same index, as what is built.
TEST(Repairs, BuildWithoutIsolationWhereTheUserBuilt) {
  EXPECT_EQ(without_isolation({"uv", "pip", "install", "--python", ".venv", "-U",
                               "--index-url=https://INDEX/", "mamba-ssm"}),
            "uv pip install --python .venv --index-url=https://INDEX/ setuptools wheel packaging ninja && "
            "uv pip install --no-build-isolation --python .venv -U --index-url=https://INDEX/ mamba-ssm");
  EXPECT_EQ(
      without_isolation({"python3", "-m", "pip", "install", "--user", "-f", "wheels here", "-iX", "-e", "."}),
      "python3 -m pip install --user -f 'wheels here' -iX setuptools wheel packaging ninja && "
      "python3 -m pip install --no-build-isolation --user -f 'wheels here' -iX -e .");
  EXPECT_EQ(without_isolation({"pip", "install", "-c", "limits.txt", "x"}),
            "pip install -c limits.txt setuptools wheel packaging ninja && "
            "pip install --no-build-isolation -c limits.txt x")
      << "a limit of setuptools holds for setuptools";
  EXPECT_EQ(without_isolation({"pip", "install", "x", "-i"}),
            "pip install setuptools wheel packaging ninja && pip install --no-build-isolation x -i");
  EXPECT_EQ(without_isolation({"pipx", "install", "x"}), "");
}

// What the catalogue says of the files, a check does; a drift from a spec or a lock is what `env check`
// finds, which the tests of envspec/ raise, and what is wrong in a policy the gate, with those of ci/gate.
TEST(Repairs, AreOfEveryCauseThatFilesShow) {
  std::set<std::string_view> raised;
  for (const std::string& name : case_names())
    for (const Finding& finding : diagnosed(case_file(name)).findings)
      raised.insert(info(finding.cause).slug);
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    if (fault.by_files() && !fault.id.starts_with("drift_") && fault.id != "allowance_expired") {
      EXPECT_TRUE(raised.contains(fault.id)) << fault.id;
    }
}

}  // namespace
}  // namespace scankit::checks
