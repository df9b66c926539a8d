// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class FindInterpreter : public PythonTree {
 protected:
  std::string path_of(const std::string& requested) {
    const auto found = find_interpreter(host_, requested);
    return found ? found->path : "ERROR " + english(found.error().message);
  }
  // One line that says what and where, another what to do next.
  void expect_refusal(const std::string& requested, const std::string& why, const std::string& hint = "") {
    const auto found = find_interpreter(host_, requested);
    ASSERT_FALSE(found) << found->path;
    EXPECT_TRUE(found.error().code == Errc::InvalidArgument || found.error().code == Errc::PermissionDenied);
    EXPECT_NE(english(found.error().message).find(why), std::string::npos) << english(found.error().message);
    EXPECT_NE(english(found.error().hint).find(hint), std::string::npos) << english(found.error().hint);
    EXPECT_FALSE(found.error().hint.empty());
    for (const char c : english(found.error().message) + english(found.error().hint))
      EXPECT_TRUE(c >= 0x20 || c < 0);
  }
  void pyenv_shim() {
    write("path/python",
          "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\"" + at("pyenv") +
              "\"\nexec \"" + at("pyenv/libexec/pyenv") + "\" exec \"$program\" \"$@\"\n",
          0755);
  }
};

TEST_F(FindInterpreter, TakesAFileAFolderOrANameOnPath) {
  const std::string python = install("base");
  const std::string venv = make_venv("venv", python);
  EXPECT_EQ(path_of(python), python);
  EXPECT_EQ(path_of(at("venv")), venv);  // the venv's link, or it would no longer be that venv
  EXPECT_EQ(path_of(at("venv/")), venv);
  link(python, "path/python3.11");
  EXPECT_EQ(path_of("python3.11"), at("path/python3.11"));
}

TEST_F(FindInterpreter, RefusesWhatIsNone) {
  expect_refusal(at("missing"), "no such file");
  expect_refusal(folder("empty"), "it is a directory without bin/python", "directory of a venv");
  expect_refusal(write("notes.txt", "hello", 0755), "the file is not a program");
  expect_refusal(write("nothing", "", 0755), "the file is empty");
  expect_refusal(write("short",
                       "\x7f"
                       "ELF",
                       0755),
                 "the file is not a program");
  expect_refusal("no-such-name", "it is neither in the current directory nor on PATH");
  expect_refusal("", "the path is empty");
  expect_refusal("/bin/ls", "the program is not Python", "directory of a venv");
  expect_refusal(link("/bin/ls", "shims/python"), "the program is not Python", "sys.executable");
  expect_refusal(write("plain", interpreter_bytes(), 0644), "the file is not executable", "chmod +x");
}

TEST_F(FindInterpreter, TellsOfAVenvWhoseBaseIsGone) {
  write("venv/pyvenv.cfg", "home = " + at("gone/bin") + "\n");
  link(at("gone/bin/python3.11"), "venv/bin/python");
  expect_refusal(at("venv"),
                 "the Python this venv was made from (" + at("gone/bin/python3.11") + ") no longer exists",
                 "-m venv --clear " + at("venv"));
  write("bare/pyvenv.cfg", "home = /x\n");
  expect_refusal(at("bare"), "venv without bin/python", "-m venv --clear " + at("bare"));
}

TEST_F(FindInterpreter, EndsAtLoops) {
  link(at("b"), "a");
  link(at("a"), "b");
  expect_refusal(at("a"), "symbolic links form a loop");
  write("x", "#!/bin/sh\nexec \"" + at("y") + "/python\" \"$@\"\n", 0755);
  link(at("x"), "y/python");
  expect_refusal(at("x"), "start one another in a loop");
}

TEST_F(FindInterpreter, PrintsNamesThatAreNotUtf8AsEscapes) {
  const std::string python = install(
      "b\xff"
      "d");
  EXPECT_EQ(path_of(python), python);
  expect_refusal(at("x\xff\x1b[31m"), "x\\xff\\x1b[31m: no such file");
}

TEST_F(FindInterpreter, SaysWhenItMayNotLook) {
  install("base");
  host_.denied = {at("base")};
  expect_refusal(at("base/bin/python"), "permission denied");
  expect_refusal(at("base"), "permission denied");
}

TEST_F(FindInterpreter, LooksThroughWrappers) {
  const std::string python = install("base");
  write("path/wrapped",
        "#!/bin/sh\n# exec /not/this/python \"$@\"\nexport X=1\nexec \"" + python + "\" \"$@\"\n", 0755);
  const auto found = find_interpreter(host_, at("path/wrapped"));
  ASSERT_TRUE(found) << english(found.error().message);
  EXPECT_EQ(found->path, python);
  EXPECT_EQ(found->through, std::vector<std::string>{at("path/wrapped")});
  expect_refusal(write("opaque", "#!/bin/sh\n\"$PY\" \"$@\"\n", 0755), "is only known by running it",
                 "sys.executable");
}

TEST_F(FindInterpreter, LooksThroughPyenv) {
  const std::string global = install("pyenv/versions/3.11.7"),
                    local = install("pyenv/versions/3.12.1", "3.12", "3.12.1");
  install("pyenv/versions/3.12.0", "3.12", "3.12.0");
  pyenv_shim();
  write("pyenv/version", "3.11.7\n");
  EXPECT_EQ(path_of(at("path/python")), path_join(path_dirname(global), "python"));
  host_.variables["PYENV_VERSION"] = "3.12";  // the newest 3.12
  EXPECT_EQ(path_of("python"), path_join(path_dirname(local), "python"));
  host_.variables["PYENV_VERSION"] = "missing:3.12.1";
  EXPECT_EQ(path_of("python"), path_join(path_dirname(local), "python"));
  host_.variables.erase("PYENV_VERSION");
  write("project/.python-version", "# chosen\n3.12.1\n");
  host_.variables["PYENV_DIR"] = folder("project/deep");
  EXPECT_EQ(path_of("python"), path_join(path_dirname(local), "python"));
  host_.variables["PYENV_VERSION"] = "3.9.0";
  expect_refusal(at("path/python"), "pyenv is set to version 3.9.0, which has no python", "pyenv versions");
}

TEST_F(FindInterpreter, GoesOnAlongPathForPyenvsSystem) {
  const std::string python = install("system");
  pyenv_shim();
  ASSERT_EQ(::rename(at("path").c_str(), at("shims").c_str()), 0);
  host_.variables["PATH"] = at("shims") + ":" + at("system/bin");
  EXPECT_EQ(path_of("python"), path_join(path_dirname(python), "python"));
  host_.variables["PATH"] = at("shims");
  expect_refusal("python", "PATH has no other Python");
}

TEST(ExecTarget, ReadsTheForms) {
  const auto target = [](const std::string& text) {
    return exec_target(text, "/opt/tool/bin/python").value_or("none");
  };
  EXPECT_EQ(target("exec /usr/bin/python3 \"$@\""), "/usr/bin/python3");
  EXPECT_EQ(target("LD_PRELOAD=/x exec -a \"$0\" '/nix/store/p/bin/python3' \"$@\""),
            "/nix/store/p/bin/python3");
  EXPECT_EQ(target("exec env A=1 /usr/bin/python3 -E \"$@\""), "/usr/bin/python3");
  EXPECT_EQ(target("exec \"$(dirname \"$0\")/python3.11\" \"$@\""), "/opt/tool/bin/python3.11");
  EXPECT_EQ(target("exec \"${0%/*}/python3.11\" \"$@\""), "/opt/tool/bin/python3.11");
  EXPECT_EQ(target("exec /usr/bin/python3 script.py"), "none");  // a program of its own, not an interpreter
  EXPECT_EQ(target("exec /usr/bin/perl \"$@\""), "none");
  EXPECT_EQ(target("exec \"$HOME/python\" \"$@\""), "none");
  EXPECT_EQ(target("echo exec /usr/bin/python3 \"$@\""), "none");
}

}  // namespace
}  // namespace scankit::probes
