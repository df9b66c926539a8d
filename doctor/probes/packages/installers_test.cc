// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/base/files.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class ProbeInstallers : public PythonTree {
 protected:
  void program(const std::string& path) {
    write(path, "#!/bin/sh\n");
    ASSERT_EQ(::chmod(at(path).c_str(), 0755), 0);
  }
  Installers probed() { return probe_installers(host_, probe_python(host_, at("venv")).value); }
};

TEST_F(ProbeInstallers, AreThoseThatRunFromThisPath) {
  make_venv("venv", install("base"));
  EXPECT_EQ(probed().uv, "");
  EXPECT_EQ(probed().conda, "");
  write("path/uv", "not executable");
  EXPECT_EQ(probed().uv, "");
  program("path/uv");
  program("path/micromamba");
  EXPECT_EQ(probed().uv, at("path/uv"));
  EXPECT_EQ(probed().conda, "micromamba");
  program("path/conda");
  EXPECT_EQ(probed().conda, "conda");
}

TEST_F(ProbeInstallers, FindTheCondaOfAShellFunction) {
  make_venv("venv", install("base"));
  host_.variables["MAMBA_EXE"] = at("root/bin/micromamba");
  EXPECT_EQ(probed().conda, "");
  program("root/bin/micromamba");
  EXPECT_EQ(probed().conda, at("root/bin/micromamba"));
  program("path/mamba");
  EXPECT_EQ(probed().conda, "mamba");
}

TEST_F(ProbeInstallers, TakeThePipOfTheBaseFrom22_3On) {
  const std::string python = install("base");
  make_venv("venv", python);
  ASSERT_EQ(::chmod(python.c_str(), 0755), 0);
  EXPECT_EQ(probed().base_pip, "");
  write("base/lib/python3.11/site-packages/pip/__main__.py", "");
  write("base/lib/python3.11/site-packages/pip-22.2.dist-info/METADATA", "");
  EXPECT_EQ(probed().base_pip, "");  // it has no --python
  ASSERT_EQ(std::rename(at("base/lib/python3.11/site-packages/pip-22.2.dist-info").c_str(),
                        at("base/lib/python3.11/site-packages/pip-22.3.1.dist-info").c_str()),
            0);
  EXPECT_EQ(probed().base_pip, at("base/bin/python3.11"));
}

TEST_F(ProbeInstallers, KnowWhatMakesPipInstallForTheUserAlone) {
  make_venv("venv", install("base"));
  EXPECT_EQ(probed().pip_user, "");
  const std::string own = write("home/.config/pip/pip.conf", "[global]\nquiet = 2\n[install]\nuser = true\n");
  EXPECT_EQ(probed().pip_user, own);
  const std::string venv = write("venv/pip.conf", "# [install]\n[install]\nUser: off\n");
  EXPECT_EQ(probed().pip_user, "");  // the environment's own file is stronger
  ASSERT_EQ(::unlink(venv.c_str()), 0);
  host_.variables["PIP_USER"] = "0";
  EXPECT_EQ(probed().pip_user, "");
  host_.variables["PIP_USER"] = "yes";
  EXPECT_EQ(probed().pip_user, "$PIP_USER");
  host_.variables.erase("PIP_USER");
  host_.variables["PIP_CONFIG_FILE"] = "/dev/null";
  EXPECT_EQ(probed().pip_user, "");
}

TEST_F(ProbeInstallers, SeeWhatHidesPip) {
  make_venv("venv", install("base"));
  write("base/lib/python3.11/json/__init__.py", "");
  write("base/lib/python3.11/test/__init__.py", "");
  write("clone/setup.py", "");
  write("clone/json/notes.txt", "");
  write("clone/test/__init__.py", "");
  const std::string before = current_directory();
  ASSERT_EQ(::chdir(at("clone").c_str()), 0);
  EXPECT_EQ(probed().pip_hidden, "");
  write("clone/json/__init__.py", "");
  EXPECT_EQ(probed().pip_hidden, at("clone/json"));
  host_.variables["PYTHONSAFEPATH"] = "1";
  EXPECT_EQ(probed().pip_hidden, "");
  host_.variables.erase("PYTHONSAFEPATH");
  ASSERT_EQ(::unlink(at("clone/json/__init__.py").c_str()), 0);
  write("clone/pip.py", "");
  EXPECT_EQ(probed().pip_hidden, at("clone/pip.py"));
  ASSERT_EQ(::chdir(before.c_str()), 0);
}

// Root may write everywhere, so a child that is nobody asks.
TEST_F(ProbeInstallers, NameWhoMayWrite) {
  make_venv("venv", install("base"));
  write("venv/lib/python3.11/site-packages/x.py", "");
  EXPECT_EQ(probed().owner, "");
  EXPECT_EQ(probed().site, at("venv/lib/python3.11/site-packages"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(at("").c_str(), 0711), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    ::_exit(probed().owner == "root" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace scankit::probes
