// SPDX-License-Identifier: Apache-2.0
// The command that a report prints must work as it is printed: by an installer that is here, as this user.
#include "doctor/report/fixes.h"

#include <gtest/gtest.h>

#include "doctor/model/snapshot_variables.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

// A venv without pip of a Python that has one, and of this user.
Snapshot venv() {
  Snapshot snapshot;
  Python python;
  python.requested = "/v/bin/python";
  python.version = "3.11.7";
  python.prefix = "/v";
  python.base_prefix = "/usr";
  snapshot.python = Probed<Python>::of(python);
  snapshot.torch.state = ProbeState::Present;
  snapshot.torch.value.version = "2.11.0";
  return snapshot;
}

Snapshot with(Snapshot snapshot, Installers found) {
  found.known = true;
  found.site = "/v/lib/python3.11/site-packages";
  set_installers(snapshot, found);
  return snapshot;
}

// Its base has a pip that serves it.
Snapshot usual() { return with(venv(), {.base_pip = "/usr/bin/python3.11"}); }

Report broken(Snapshot snapshot, std::vector<Fix> fixes, const std::string& module = "mamba_ssm") {
  Report report;
  report.snapshot = std::move(snapshot);
  report.verdict = Verdict::Broken;
  report.findings = {{.cause = Cause::TritonIncompatible, .module = module, .fixes = std::move(fixes)}};
  return report;
}

const Fix kTriton = InstallPackages{{"triton==3.6.0"}};

// `python -m pip` would run what the current directory has under a name of pip's.
TEST(Installer, IsRunElsewhereWhereTheCurrentDirectoryHidesPip) {
  const std::string pip = "/usr/bin/python3.11 -m pip --python /v/bin/python";
  const Snapshot snapshot = with(venv(), {.base_pip = "/usr/bin/python3.11", .pip_hidden = "/clone/pip"});
  EXPECT_EQ(fix_command(kTriton, snapshot), "cd / && " + pip + " install triton==3.6.0");
  EXPECT_EQ(fix_command(RebuildPackage{"my-ext", "1.0", "", {{"MAX_JOBS", "1"}}}, snapshot).substr(0, 20),
            "cd / && MAX_JOBS=1 /");
  EXPECT_TRUE(fix_command(KeepOnly{"triton==3.6.0", {"other"}}, snapshot).starts_with("cd / && " + pip));
  EXPECT_TRUE(fix_command(BuildProject{"/clone"}, snapshot).starts_with("cd / && " + pip));
  const Snapshot by_uv = with(venv(), {.uv = "/bin/uv", .pip_hidden = "/clone/pip"});
  EXPECT_TRUE(fix_command(kTriton, by_uv).starts_with("uv "));
}

TEST(Installer, IsOneThatIsHere) {
  Snapshot snapshot = usual();
  EXPECT_EQ(fix_command(kTriton, snapshot),
            "/usr/bin/python3.11 -m pip --python /v/bin/python install triton==3.6.0");
  snapshot = with(venv(), {.uv = "/home/u/.local/bin/uv", .base_pip = "/usr/bin/python3.11"});
  EXPECT_EQ(fix_command(kTriton, snapshot), "uv pip install --python /v/bin/python triton==3.6.0");
  snapshot.python.value.has_pip = true;
  EXPECT_EQ(fix_command(kTriton, snapshot), "/v/bin/python -m pip install triton==3.6.0");
  snapshot.python.value.has_pip = false;
  snapshot = with(venv(), {.ensurepip = "/usr/lib/python3.11/ensurepip"});
  EXPECT_EQ(fix_command(kTriton, snapshot), "");
  EXPECT_NE(fix_sentence(kTriton, snapshot).find("/v/bin/python -m ensurepip"), std::string::npos);
  snapshot = with(venv(), {});  // Debian without python3-venv
  EXPECT_EQ(fix_sentence(kTriton, snapshot).find("-m ensurepip"), std::string::npos);
  EXPECT_NE(fix_sentence(kTriton, snapshot).find("apt install python3-venv"), std::string::npos);
}

TEST(Installer, OfAnotherUsersEnvironmentIsThatUsers) {
  Snapshot snapshot = with(venv(), {.owner = "alice"});
  snapshot.python.value.has_pip = true;
  EXPECT_EQ(fix_command(kTriton, snapshot), "");  // --user is refused in a venv
  EXPECT_NE(fix_sentence(kTriton, snapshot).find("alice must do this"), std::string::npos);
  EXPECT_EQ(repair_command(broken(snapshot, {kTriton})), std::nullopt);
  // scankit finds a place of its own for a module.
  EXPECT_EQ(repair_command(broken(snapshot, {InstallModule{"selective_scan_cuda"}})),
            "scankit fix --python /v/bin/python");
  snapshot.python.value.base_prefix = "/v";
  snapshot.python.value.user_site_enabled = true;
  EXPECT_EQ(fix_command(kTriton, snapshot), "/v/bin/python -m pip install --user triton==3.6.0");
  snapshot.python.value.externally_managed = true;
  EXPECT_EQ(fix_command(kTriton, snapshot), "");
  EXPECT_NE(fix_sentence(kTriton, snapshot).find("-m venv"), std::string::npos);
}

// A name of an index may be somebody else's package.
TEST(Installer, BuildsAProjectWithWhatIsHere) {
  const Fix build = BuildProject{"/p/my kernels", "selective_scan_cuda_oflex"};
  EXPECT_EQ(fix_command(build, usual()),
            "/usr/bin/python3.11 -m pip --python /v/bin/python install --no-build-isolation '/p/my kernels'");
  EXPECT_EQ(fix_command(build, with(venv(), {.uv = "/bin/uv"})),
            "uv pip install --python /v/bin/python --no-build-isolation '/p/my kernels'");
  Snapshot system = usual();
  system.python.value.externally_managed = true;
  EXPECT_EQ(fix_command(build, system), "");
  EXPECT_NE(fix_sentence(build, system).find("-m venv .venv"), std::string::npos);
}

TEST(Installer, UninstallsWhatWroteOverAnother) {
  const Fix keep = KeepOnly{"triton==3.6.0", {"pytorch-triton", "triton-nightly"}};
  EXPECT_EQ(fix_command(keep, usual()),
            "/usr/bin/python3.11 -m pip --python /v/bin/python uninstall -y pytorch-triton triton-nightly && "
            "/usr/bin/python3.11 -m pip --python /v/bin/python install --force-reinstall --no-deps "
            "triton==3.6.0");
  EXPECT_EQ(fix_command(keep, with(venv(), {.uv = "/bin/uv"})),
            "uv pip uninstall --python /v/bin/python pytorch-triton triton-nightly && "
            "uv pip install --python /v/bin/python --reinstall --no-deps triton==3.6.0");
  // `install --user` would put a second copy beside the one that only its owner can uninstall.
  Snapshot theirs = with(venv(), {.base_pip = "/usr/bin/python3.11", .owner = "root"});
  theirs.python.value.base_prefix = theirs.python.value.prefix;
  theirs.python.value.has_pip = theirs.python.value.user_site_enabled = true;
  EXPECT_EQ(fix_command(keep, theirs), "");
  EXPECT_NE(fix_sentence(keep, theirs).find("root must do this"), std::string::npos);
}

TEST(Installer, LeavesToCondaWhatCondaInstalled) {
  Snapshot snapshot = with(venv(), {.conda = "mamba"});
  snapshot.python.value.kind = "conda";
  snapshot.distributions =
      Probed<std::vector<Distribution>>::of({{.name = "triton"}, {.name = "numba-triton"}});
  for (Distribution& known : snapshot.distributions.value) known.conda_channel = "conda-forge";
  EXPECT_EQ(fix_command(KeepOnly{"triton==3.6.0", {"numba-triton"}}, snapshot),
            "mamba remove --prefix /v --force numba-triton && "
            "mamba install --prefix /v --force-reinstall triton=3.6.0");
}

TEST(Installer, AsksNoIndexForWhatCameFromAFolder) {
  Snapshot snapshot = usual();
  snapshot.distributions.value = {{.name = "my_ext", .version = "1.0", .project = "/src/my ext"}};
  EXPECT_EQ(fix_command(InstallPackages{{"my-ext==1.0"}, true}, snapshot),
            "/usr/bin/python3.11 -m pip --python /v/bin/python install --force-reinstall --no-deps '/src/my "
            "ext' && "
            "/usr/bin/python3.11 -m pip --python /v/bin/python install '/src/my ext'");
  // The folder holds the release that is there already.
  const Fix other = InstallPackages{{"my-ext>=2"}};
  EXPECT_EQ(fix_command(other, snapshot), "");
  EXPECT_NE(fix_sentence(other, snapshot).find("installed from /src/my ext"), std::string::npos);
  const Fix rebuild = RebuildPackage{"my_ext", "1.0", "", {}};
  EXPECT_EQ(fix_command(rebuild, snapshot),
            "/usr/bin/python3.11 -m pip --python /v/bin/python install --no-build-isolation --no-deps "
            "--no-cache-dir "
            "--force-reinstall '/src/my ext'");
  snapshot.distributions.value[0].project = "/dist/my_ext-1.0-cp311-cp311-linux_x86_64.whl";
  EXPECT_EQ(fix_command(rebuild, snapshot), "");
  EXPECT_NE(fix_sentence(rebuild, snapshot).find("which must be rebuilt for the installed torch"),
            std::string::npos);
}

TEST(LastLine, IsScankitWhereverThatCanDoIt) {
  const std::string fix = "scankit fix --python /v/bin/python";
  EXPECT_EQ(repair_command(broken(usual(), {kTriton})), fix);
  EXPECT_EQ(repair_command(broken(usual(), {Advice{"think"}, RebuildPackage{"flash-attn", "2.8.3", "", {}}})),
            fix);
  EXPECT_EQ(repair_command(broken(usual(), {SetEnvironment{"LD_LIBRARY_PATH", "/a:/my b"}})),
            "export LD_LIBRARY_PATH='/a:/my b'");
  EXPECT_EQ(repair_command(broken(usual(), {SetEnvironment{"LD_LIBRARY_PATH", ""}})),
            "unset LD_LIBRARY_PATH");
  EXPECT_EQ(repair_command(broken(usual(), {Advice{"name it\nexport TORCH_CUDA_ARCH_LIST=9.0"}})),
            "export TORCH_CUDA_ARCH_LIST=9.0");
  EXPECT_EQ(repair_command(broken(usual(), {Advice{"ask"}})), std::nullopt);
  // fix needs a torch to work with; the installer does not.
  Snapshot bare = usual();
  bare.torch.state = ProbeState::Absent;
  EXPECT_EQ(repair_command(broken(bare, {InstallPackages{{"torch"}}})),
            "/usr/bin/python3.11 -m pip --python /v/bin/python install torch");
}

// What torch or the driver lacks is not repaired by what stands above it.
TEST(LastLine, PromisesNothingAboveAFaultOfTorch) {
  Report report = broken(usual(), {Advice{"update the driver"}}, "torch");
  report.findings.push_back(
      {.cause = Cause::NoKernelImage, .module = "m", .fixes = {InstallModule{"selective_scan_cuda"}}});
  EXPECT_EQ(repair_command(report), std::nullopt);
  report.findings[0].module = "another";
  EXPECT_EQ(repair_command(report), "scankit fix --python /v/bin/python");
}

TEST(LastLine, NamesScankitAsItWasStarted) {
  set_scankit_program("scankit");
  EXPECT_EQ(scankit_program(), "scankit");
  set_scankit_program("./my build/scankit");
  EXPECT_EQ(repair_command(broken(usual(), {kTriton})), "'./my build/scankit' fix --python /v/bin/python");
  Snapshot stored = usual();
  stored.read_from = "snapshot.json";
  EXPECT_EQ(repair_command(broken(stored, {kTriton})), "scankit fix --python /v/bin/python");
  set_scankit_program("scankit");
}

}  // namespace
}  // namespace scankit::report
