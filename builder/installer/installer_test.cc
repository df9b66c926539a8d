// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/installer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "doctor/probes/python/python_host_test.h"

namespace scankit::installer {
namespace {

std::string words(const InstallerCommand& command) {
  std::string text;
  for (const std::string& word : command.argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string lines(const std::vector<InstallerCommand>& commands) {
  std::string text;
  for (const InstallerCommand& command : commands) text += words(command) + "\n";
  return text;
}

class InstallerOf : public probes::PythonTree {
 protected:
  InstallerOf() {
    snapshot.python.state = ProbeState::Present;
    python().prefix = python().base_prefix = at("env");
    python().version = "3.11.7";
    python().kind = "venv";
    write("env/bin/python", "", 0755);
  }
  Python& python() { return snapshot.python.value; }
  void has_uv() { write("path/uv", "", 0755); }
  void has(const std::string& name, const std::string& installer, const std::string& channel = "") {
    snapshot.distributions.value.push_back({.name = name, .installer = installer, .conda_channel = channel});
  }
  Installer found(const std::string& package = "") { return installer_of(host_, snapshot, package); }
  Snapshot snapshot;
};

TEST_F(InstallerOf, AVenvIsItsPip) {
  python().has_pip = true;
  has_uv();
  EXPECT_EQ(name_of(found().kind), "pip");
  EXPECT_EQ(words(change_commands(found(), {.requirements = {"torch==2.11.0"}}).at(0)),
            at("env/bin/python") + " -m pip --disable-pip-version-check --no-input install torch==2.11.0");
}

TEST_F(InstallerOf, AVenvOfUvIsUvEvenWithPip) {
  python().has_pip = true;
  python().kind = "uv";
  has_uv();
  EXPECT_EQ(words(change_commands(found(), {.requirements = {"torch==2.11.0"}, .upgrade = true}).at(0)),
            at("path/uv") + " pip install --python " + at("env/bin/python") + " --upgrade torch==2.11.0");
}

TEST_F(InstallerOf, AVenvOfUvWithoutUvIsItsPipOrNone) {
  python().kind = "uv";
  EXPECT_EQ(name_of(found().kind), "none");
  EXPECT_NE(found().why.find("uv created this environment"), std::string::npos);
  EXPECT_NE(found().instead.find("ensurepip"), std::string::npos);
  python().has_pip = true;
  EXPECT_EQ(name_of(found().kind), "pip");
}

TEST_F(InstallerOf, WhatUvInstalledIsChangedByUv) {
  python().has_pip = true;
  has("torch", "uv");
  EXPECT_EQ(name_of(found().kind), "pip");  // no uv here
  has_uv();
  EXPECT_EQ(name_of(found().kind), "uv");
}

TEST_F(InstallerOf, UvIsFoundWhereItsInstallerPutsIt) {
  write("home/.local/bin/uv", "", 0755);
  EXPECT_EQ(found().program.at(0), at("home/.local/bin/uv"));
  write("home/.local/bin/uv", "", 0644);  // no program
  EXPECT_EQ(name_of(found().kind), "none");
  host_.variables["UV"] = write("elsewhere/uv", "", 0755);
  EXPECT_EQ(found().program.at(0), at("elsewhere/uv"));
}

TEST_F(InstallerOf, AVenvWithoutPipIsServedByItsBase) {
  python().base_prefix = at("base");
  write("base/bin/python3.11", "", 0755);
  EXPECT_EQ(name_of(found().kind), "none");
  write("base/lib/python3.11/site-packages/pip/__main__.py", "");
  EXPECT_EQ(words(change_commands(found(), {.requirements = {"einops"}}).at(0)),
            at("base/bin/python3.11") + " -m pip --python " + at("env/bin/python") +
                " --disable-pip-version-check --no-input install einops");
}

TEST_F(InstallerOf, AVenvWithoutPipTakesThePipThatKnowsThePrivateIndexBeforeUv) {
  python().base_prefix = at("base");
  write("base/bin/python3.11", "", 0755);
  has_uv();
  host_.variables["PIP_INDEX_URL"] = "https://pip.corp.example/simple";
  EXPECT_EQ(name_of(found().kind), "uv");  // nothing else is here
  write("base/lib/python3.11/site-packages/pip/__main__.py", "");
  EXPECT_EQ(name_of(found().kind), "pip");
  host_.variables["UV_DEFAULT_INDEX"] = "https://uv.corp.example/simple";  // which uv reads
  EXPECT_EQ(name_of(found().kind), "uv");
  host_.variables.erase("PIP_INDEX_URL");
  host_.variables.erase("UV_DEFAULT_INDEX");
  EXPECT_EQ(name_of(found().kind), "uv");
}

TEST_F(InstallerOf, AProjectOfUvIsChangedInItsOwnRecords) {
  has_uv();
  python().prefix = at("work/.venv");
  write("work/.venv/bin/python", "", 0755);
  write("work/pyproject.toml", "[project]\n");
  EXPECT_EQ(found().project, "");  // nothing says that uv keeps it
  write("work/uv.lock", "version = 1\n[[package]]\nname = \"torch\"\nversion = \"2.4.0\"\n");
  const Installer uv = found();
  EXPECT_EQ(uv.project, at("work"));
  const PackageChange pin{.requirements = {"torch==2.11.0"}, .upgrade = true};
  EXPECT_EQ(lines(change_commands(uv, pin)),
            at("path/uv") + " add --project " + at("work") + " --upgrade-package torch torch==2.11.0\n");
  EXPECT_EQ(change_commands(uv, pin).at(0).environment,
            std::vector<std::string>{"UV_PROJECT_ENVIRONMENT=" + at("work/.venv")});
  EXPECT_TRUE(kept_by_sync(uv, pin));
  const PackageChange again{.requirements = {"torch"}, .reinstall = true};
  EXPECT_EQ(lines(change_commands(uv, again)), at("path/uv") + " cache clean torch\n" + at("path/uv") +
                                                   " sync --project " + at("work") +
                                                   " --frozen --inexact --reinstall-package torch\n");
  // What the lock does not know cannot be brought back by it.
  const PackageChange foreign{.requirements = {"einops"}, .reinstall = true};
  EXPECT_NE(lines(change_commands(uv, foreign)).find("pip install --python"), std::string::npos);
  EXPECT_FALSE(kept_by_sync(uv, foreign));
  EXPECT_FALSE(kept_by_sync(uv, {.requirements = {"mamba-ssm"}, .dependencies = false}));
}

TEST_F(InstallerOf, AProjectMayNameItsEnvironment) {
  has_uv();
  python().prefix = at("work/environments/gpu");
  write("work/environments/gpu/bin/python", "", 0755);
  write("work/pyproject.toml", "[project]\n");
  write("work/uv.lock", "version = 1\n");
  EXPECT_EQ(found().project, "");
  host_.variables["UV_PROJECT_ENVIRONMENT"] = "environments/gpu";
  EXPECT_EQ(found().project, at("work"));
  host_.variables["UV_PROJECT_ENVIRONMENT"] = "environments/cpu";
  EXPECT_EQ(found().project, "");
}

TEST_F(InstallerOf, CondaChangesWhatCondaInstalledAndPipTheRest) {
  python().kind = "conda";
  python().has_pip = true;
  has("torch", "conda", "conda-forge");
  has("mamba-ssm", "pip");
  EXPECT_EQ(name_of(found("torch").kind), "none");
  write("opt/bin/conda", "", 0755);
  write("env/conda-meta/history", "==> 2025-01-01 <==\n# cmd: " + at("opt/bin/conda") + " create -n x\n");
  EXPECT_EQ(words(change_commands(found("Torch"), {.requirements = {"torch==2.4.0"}}).at(0)),
            at("opt/bin/conda") + " install --yes --prefix " + at("env") + " pytorch=2.4.0");
  EXPECT_EQ(
      words(change_commands(found("torch"), {.requirements = {"numpy"}, .reinstall = true}).at(0)),
      at("opt/bin/conda") + " install --yes --prefix " + at("env") + " --force-reinstall --no-deps numpy");
  EXPECT_TRUE(change_commands(found("torch"), {.requirements = {"torch"}, .from_source = {"torch"}}).empty());
  EXPECT_EQ(name_of(found("mamba_ssm").kind), "pip");
  write("env/conda-meta/pixi", "");
  EXPECT_EQ(name_of(found("torch").kind), "none");
  EXPECT_NE(found("torch").instead.find("pixi"), std::string::npos);
}

// It has no installation of its own, so that neither the prefix nor the directory above "envs" has a conda.
TEST_F(InstallerOf, MicromambaChangesWhatItHasMade) {
  python().kind = "conda";
  has("torch", "conda", "conda-forge");
  write("opt/bin/micromamba", "", 0755);
  write("env/conda-meta/history", "==> 2026-01-01 10:00:00 <==\n# cmd: micromamba create -n x\n");
  EXPECT_EQ(name_of(found("torch").kind), "none");  // it recorded what was typed, and no file
  write("env/conda-meta/history",
        "==> 2026-01-01 10:00:00 <==\n# cmd: " + at("opt/bin/micromamba") + " create -n x\n");
  EXPECT_EQ(found("torch").program, std::vector{at("opt/bin/micromamba")});
  write("env/bin/micromamba", "", 0755);
  EXPECT_EQ(found("torch").program, std::vector{at("env/bin/micromamba")});
}

TEST_F(InstallerOf, TheCondaOfAShellIsTheOneThatItsFunctionStarts) {
  EXPECT_EQ(conda_of_shell(host_).program, "");
  write("path/micromamba", "", 0755);
  EXPECT_EQ(conda_of_shell(host_).program, at("path/micromamba"));
  EXPECT_EQ(conda_of_shell(host_).found_by, "PATH");
  host_.variables["CONDA_EXE"] = at("gone/bin/conda");
  write("opt/bin/mamba", "", 0755);
  host_.variables["MAMBA_EXE"] = at("opt/bin/mamba");
  EXPECT_EQ(conda_of_shell(host_).program, at("opt/bin/mamba"));
  EXPECT_EQ(conda_of_shell(host_).found_by, "MAMBA_EXE");
  write("gone/bin/conda", "", 0755);
  EXPECT_EQ(conda_of_shell(host_).program, at("gone/bin/conda"));
}

TEST_F(InstallerOf, AManagedPythonIsLeftAloneButMayDownload) {
  python().has_pip = python().externally_managed = true;
  EXPECT_EQ(name_of(found().kind), "none");
  EXPECT_NE(found().why.find("EXTERNALLY-MANAGED"), std::string::npos);
  const Installer downloader = downloader_of(host_, snapshot);
  EXPECT_EQ(name_of(downloader.kind), "pip");
  EXPECT_EQ(words(download_command(downloader, "einops==0.8.0", "/into")),
            at("env/bin/python") +
                " -m pip --disable-pip-version-check --no-input download --no-deps --only-binary :all: "
                "--progress-bar off --dest /into einops==0.8.0");
  EXPECT_NE(words(unpack_command(downloader, "/list", "/into")).find("--target /into --no-deps"),
            std::string::npos);
}

TEST_F(InstallerOf, WithoutPythonUvDownloads) {
  snapshot.python = Probed<Python>::failed("none");
  EXPECT_EQ(name_of(downloader_of(host_, snapshot).kind), "none");
  EXPECT_EQ(name_of(found().kind), "none");
  write("base/lib/python3.12/site-packages/pip/__main__.py", "");
  write("base/bin/python3.12", "", 0755);
  ASSERT_TRUE(make_directories(at("path")));
  ASSERT_EQ(::symlink(at("base/bin/python3.12").c_str(), at("path/python3").c_str()), 0);
  EXPECT_EQ(downloader_of(host_, snapshot).program.at(0), at("path/python3"));
  has_uv();
  EXPECT_EQ(words(unpack_command(downloader_of(host_, snapshot), "/list", "/into")),
            at("path/uv") +
                " pip install --link-mode copy --no-progress --target /into --no-deps --only-binary :all: "
                "--require-hashes -r /list");
}

TEST_F(InstallerOf, RootRunsNobodyElsesInstaller) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  has_uv();
  ASSERT_EQ(::chown(at("path/uv").c_str(), 12345, 12345), 0);
  EXPECT_EQ(name_of(found().kind), "none");
  EXPECT_NE(found().why.find("belongs to user 12345"), std::string::npos);
}

TEST(InstallerCommands, BuildFromSourceAgainstWhatIsThere) {
  const PackageChange change{.requirements = {"mamba-ssm==2.2.4"},
                             .dependencies = false,
                             .isolated_build = false,
                             .from_source = {"mamba-ssm"}};
  const Installer pip{.kind = Installer::Kind::Pip, .program = {"/p", "-m", "pip"}};
  EXPECT_EQ(lines(change_commands(pip, change)),
            "/p -m pip --disable-pip-version-check --no-input install --no-deps --no-build-isolation "
            "--no-binary mamba-ssm --no-cache-dir mamba-ssm==2.2.4\n");
  const Installer uv{.kind = Installer::Kind::Uv, .program = {"/uv"}, .environment = "/p"};
  EXPECT_EQ(lines(change_commands(uv, change)),
            "/uv pip install --python /p --no-deps --no-build-isolation --no-binary mamba-ssm --no-cache "
            "mamba-ssm==2.2.4\n");
  EXPECT_EQ(lines(change_commands(uv, {.requirements = {"/w/a.whl"}, .reinstall = true})),
            "/uv pip install --python /p --no-deps --reinstall /w/a.whl\n");
  const PackageChange local{.requirements = {"My_Ext @ file:///home/u/my%20source"},
                            .dependencies = false,
                            .isolated_build = false,
                            .from_source = {"my-ext"}};
  EXPECT_EQ(lines(change_commands(pip, local)),
            "/p -m pip --disable-pip-version-check --no-input install --no-deps --no-build-isolation "
            "--no-cache-dir "
            "My_Ext @ file:///home/u/my%20source\n");
}

// In the order of a user's surprises: the settings of pip, of uv's own file, and of a project.
TEST_F(InstallerOf, SettingsThatInstallElsewhereAreRefused) {
  using Kind = Installer::Kind;
  const auto refused = [&](const std::string& file, const std::string& text, const Installer& installer) {
    write(file, text);
    const auto checked = check_not_diverted(*make_real_host(), {}, installer);
    std::filesystem::remove(at(file));
    return checked ? "" : checked.error().message.english();
  };
  const Installer uv{.kind = Kind::Uv}, pip{.kind = Kind::Pip};
  const auto before = std::filesystem::current_path();
  ASSERT_EQ(::setenv("PIP_CONFIG_FILE", at("pip.conf").c_str(), 1), 0);
  EXPECT_EQ(refused("pip.conf", "[install]\nPrefix = /srv\n", pip).find("[install] prefix of "), 0u);
  EXPECT_EQ(refused("pip.conf", "[global]\ntarget: /srv\n", pip).find("[global] target of "), 0u);
  EXPECT_EQ(refused("pip.conf", "[global]\nindex-url = https://mine/simple\n[wheel]\nprefix = x\n", pip), "");
  ::unsetenv("PIP_CONFIG_FILE");
  std::filesystem::current_path(folder("project/inner"));
  const std::string project = "project/pyproject.toml";
  EXPECT_EQ(refused(project, "[tool.uv.pip]\ntarget = \"x\"\n", uv).find("[tool.uv.pip] target of "), 0u);
  EXPECT_EQ(refused(project, "[tool.uv]\npip = { prefix = \"x\" }\n", uv).find("[tool.uv.pip] prefix of "),
            0u);
  EXPECT_EQ(refused(project, "[tool.other]\ntarget = \"x\"\n[tool.uv]\nindex-url = \"x\"\n", uv), "");
  EXPECT_EQ(refused("project/uv.toml", "[pip]\nprefix = \"x\"\n", uv).find("[pip] prefix of "), 0u);
  // In the directory of a project uv is started there, and its settings are read from there.
  const Installer of_project{.kind = Kind::Uv, .project = folder("mine")};
  EXPECT_EQ(refused(project, "[tool.uv.pip]\ntarget = \"x\"\n", of_project), "");
  EXPECT_EQ(refused("mine/uv.toml", "[pip]\ntarget = \"x\"\n", of_project).find("[pip] target of "), 0u);
  std::filesystem::current_path(before);
}

TEST(InstallerCommands, AreShownAsAShellTakesThem) {
  const InstallerCommand command{
      {"/bin/sh", "-c", "test \"$A$B$PWD\" = '8.0;9.0/'"}, {"A=8.0;9.0", "B="}, "/", {}};
  EXPECT_EQ(shown(command).substr(0, 40), "cd / && A='8.0;9.0' B='' /bin/sh -c 'tes");
  EXPECT_EQ(std::system(shown(command).c_str()), 0);  // by sh -c
}

// Python puts the directory in which it is started in front of sys.path.
TEST_F(InstallerOf, PipIsNoStrangersOfTheCurrentDirectory) {
  const char* python = "/usr/bin/python3";
  if (::access(python, X_OK) != 0) GTEST_SKIP() << "no " << python << " here";
  write("cloned/pip/__init__.py", "");
  write("cloned/pip/__main__.py", "open('" + at("obeyed") + "', 'w')\n");
  const Installer pip{.kind = Installer::Kind::Pip, .program = {python, "-m", "pip"}};
  std::vector<InstallerCommand> all = change_commands(pip, {.requirements = {"/nowhere.whl"}});
  all.push_back(unpack_command(pip, "/nowhere", at("out")));
  all.push_back(tools_command(pip, {"/nowhere.whl"}, at("out")));
  all.push_back(wheel_command(pip, "/nowhere", at("out"), false));
  all.push_back(download_command(pip, "/nowhere.whl", at("out")));
  for (const InstallerCommand& command : all) {
    EXPECT_NE(std::system(("cd '" + at("cloned") + "' && " + shown(command) + " >/dev/null 2>&1").c_str()),
              0);
    EXPECT_FALSE(std::filesystem::exists(at("obeyed"))) << shown(command);
  }
}

// In another directory than ours.
TEST(InstallerCommands, KeepThePathsOfPipsSettings) {
  const auto given = [](const char* name, const char* value) {
    ::setenv(name, value, 1);
    const auto all = variables_of({.argv = {"/p"}, .environment = {"PIP_USER=0"}});
    ::unsetenv(name);
    const auto found = std::ranges::find_if(
        all, [&](const std::string& one) { return one.starts_with(std::string(name) + "="); });
    return found == all.end() ? "none" : found->substr(found->find('=') + 1);
  };
  EXPECT_EQ(given("PIP_CONFIG_FILE", "mine/pip.conf"),
            std::filesystem::current_path().string() + "/mine/pip.conf");
  EXPECT_EQ(given("PIP_CONSTRAINT", "/c.txt"), "/c.txt");
  EXPECT_EQ(given("PIP_FIND_LINKS", "https://mine/wheels"), "https://mine/wheels");
  EXPECT_EQ(given("PIP_USER", "1"), "0");
  for (const char* name : kPlaceVariables) EXPECT_EQ(given(name, "elsewhere"), "none");
}

TEST(InstallerCommands, BuildAWheelAndInstallNothing) {
  const Installer pip{.kind = Installer::Kind::Pip, .program = {"/p", "-m", "pip"}};
  const Installer uv{.kind = Installer::Kind::Uv, .program = {"/uv"}, .environment = "/p"};
  EXPECT_EQ(
      words(wheel_command(pip, "/src", "/out", false)),
      "/p -m pip --disable-pip-version-check --no-input wheel --no-deps --no-cache-dir --wheel-dir /out "
      "--no-build-isolation /src");
  EXPECT_EQ(words(wheel_command(uv, "/src", "/out", false)),
            "/uv build --wheel --python /p --out-dir /out --no-build-isolation /src");
  EXPECT_EQ(words(wheel_command(uv, "/src", "/out", true)),
            "/uv build --wheel --python /p --out-dir /out /src");
}

TEST(InstallerCommands, NormaliseNames) {
  EXPECT_EQ(required_name("Nvidia_CUDA.nvrtc--cu12>=12"), "nvidia-cuda-nvrtc-cu12");
  EXPECT_EQ(required_name("torch[all]==2"), "torch");
}

}  // namespace
}  // namespace scankit::installer
