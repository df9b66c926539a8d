// SPDX-License-Identifier: Apache-2.0
// Our import path, version and suffixes against what real interpreters print of themselves.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "doctor/base/process.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

using Json = nlohmann::json;

constexpr const char* kAsk = R"(
import sys, json, sysconfig, site, importlib.machinery as m
print(json.dumps({'path': sys.path, 'prefix': sys.prefix, 'base': sys.base_prefix,
  'suffixes': m.EXTENSION_SUFFIXES, 'version': sys.version.split()[0], 'user': bool(site.ENABLE_USER_SITE),
  'soabi': sysconfig.get_config_var('SOABI'), 'nogil': bool(sysconfig.get_config_var('Py_GIL_DISABLED'))}))
)";

class RealPython : public PythonTree {
 protected:
  RealPython() {
    const char* path = std::getenv("PATH");
    host_.variables["PATH"] = path == nullptr ? "/usr/bin:/bin" : path;
    host_.variables["PYTHONDONTWRITEBYTECODE"] = "1";
    folder("home");
  }

  ProcessResult run(std::vector<std::string> argv, std::chrono::seconds timeout = std::chrono::seconds(120)) {
    ProcessRequest request;
    request.argv = std::move(argv);
    request.timeout = timeout;
    request.environment.emplace();
    for (const auto& [name, value] : host_.variables) request.environment->push_back(name + "=" + value);
    auto result = run_process(request);
    return result ? std::move(result).value() : ProcessResult{};
  }

  // The pyenv Pythons that are installed, 3.6 and newer, and the system's.
  static std::vector<std::string> interpreters() {
    std::vector<std::string> found;
    const auto host = make_real_host();
    const char* home = std::getenv("HOME");
    const std::string versions = std::string(home == nullptr ? "/root" : home) + "/.pyenv/versions";
    if (const auto entries = host->list(versions))
      for (const DirEntry& entry : *entries) {
        const std::string file = path_join(versions, entry.name + "/bin/python");
        if (!entry.name.starts_with("2.") && host->exists(file)) found.push_back(file);
      }
    if (host->exists("/usr/bin/python3")) found.emplace_back("/usr/bin/python3");
    return found;
  }

  // One that has a torch, or the newest one there is.
  static std::string any_interpreter() {
    if (const char* given = std::getenv("SCANKIT_TEST_PYTHON")) return given;
    const auto all = interpreters();
    return all.empty() ? "" : all.back();
  }

  void compare(const std::string& interpreter) {
    SCOPED_TRACE(interpreter);
    const ProcessResult answer = run({interpreter, "-c", kAsk});
    ASSERT_TRUE(answer.ok()) << answer.err;
    const Json real = Json::parse(answer.out);
    const auto probed = probe_python(host_, interpreter);
    ASSERT_TRUE(probed.present()) << probed.note;
    std::vector<std::string> expected, ours;
    for (const std::string entry : real["path"])
      if (entry.find("__path_hook__") == std::string::npos)
        expected.push_back(entry.empty() ? current_directory() : entry);
    for (const PathEntry& entry : probed.value.sys_path) ours.push_back(entry.path);
    EXPECT_EQ(ours, expected);
    EXPECT_EQ(probed.value.version, real["version"].get<std::string>());
    EXPECT_EQ(probed.value.prefix, real["prefix"].get<std::string>());
    EXPECT_EQ(probed.value.base_prefix, real["base"].get<std::string>());
    EXPECT_EQ(Json(probed.value.extension_suffixes), real["suffixes"]);
    EXPECT_EQ(probed.value.soabi, real["soabi"].get<std::string>());
    EXPECT_EQ(probed.value.user_site_enabled, real["user"].get<bool>());
    EXPECT_EQ(probed.value.free_threaded, real["nogil"].get<bool>());
  }

  // Makes it as a user does; empty where this Python has no venv module.
  std::string venv(const std::string& interpreter, const std::string& name,
                   std::vector<std::string> options) {
    std::vector<std::string> argv{interpreter, "-m", "venv", "--without-pip"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(at(name));
    return run(argv).ok() ? at(name + "/bin/python") : "";
  }

  void user_package(const std::string& interpreter) {
    const ProcessResult answer = run({interpreter, "-c", "import site; print(site.getusersitepackages())"});
    ASSERT_TRUE(answer.ok()) << answer.err;
    const std::string site = answer.out.substr(0, answer.out.find('\n'));
    ASSERT_TRUE(make_directories(site));
    ASSERT_TRUE(write_file_atomically(path_join(site, "extra.pth"), at("extra") + "\n"));
    folder("extra");
  }
};

TEST_F(RealPython, EveryInterpreterItself) {
  if (interpreters().empty()) GTEST_SKIP() << "no pyenv Python and no /usr/bin/python3 here";
  for (const std::string& interpreter : interpreters()) compare(interpreter);
  if (host_.exists("/bin/python3")) compare("/bin/python3");
}

TEST_F(RealPython, VenvsOfEveryInterpreter) {
  if (interpreters().empty()) GTEST_SKIP() << "no pyenv Python and no /usr/bin/python3 here";
  int made = 0;
  for (const std::string& interpreter : interpreters()) {
    const std::string name = "venv" + std::to_string(made);
    const std::string plain = venv(interpreter, name, {});
    if (plain.empty()) continue;  // Debian without python3-venv
    ++made;
    compare(plain);
    user_package(interpreter);
    const std::string shared = venv(interpreter, name + "-shared", {"--system-site-packages"});
    compare(shared);
    compare(venv(interpreter, name + "-copies", {"--copies"}));
    compare(venv(shared, name + "-nested", {}));
  }
  if (made == 0) GTEST_SKIP() << "no Python here has the venv module";
}

TEST_F(RealPython, UserSiteAndItsSwitches) {
  if (interpreters().empty()) GTEST_SKIP() << "no pyenv Python and no /usr/bin/python3 here";
  for (const std::string& interpreter : interpreters()) {
    host_.variables["PYTHONUSERBASE"] = at("base" + std::to_string(interpreter.size()));
    user_package(interpreter);
    compare(interpreter);
    for (const char* value : {"1", "yes", "", "0", "-1", "-0"}) {
      host_.variables["PYTHONNOUSERSITE"] = value;
      compare(interpreter);
    }
    host_.variables.erase("PYTHONNOUSERSITE");
  }
}

TEST_F(RealPython, PythonPathAndHome) {
  if (interpreters().empty()) GTEST_SKIP() << "no pyenv Python and no /usr/bin/python3 here";
  folder("one");
  for (const std::string& interpreter : interpreters()) {
    for (const std::string& value :
         {at("one") + "::relative:" + at("missing") + ":" + at("one") + "/../one:/", std::string(":")}) {
      host_.variables["PYTHONPATH"] = value;
      compare(interpreter);
    }
    host_.variables["PYTHONSAFEPATH"] = "1";
    compare(interpreter);
    host_.variables.erase("PYTHONSAFEPATH");
  }
}

TEST_F(RealPython, PthFilesLineByLine) {
  if (any_interpreter().empty()) GTEST_SKIP() << "no Python here";
  for (const std::string& interpreter : interpreters()) {
    const std::string name =
        "pth" + std::to_string(interpreter.size()) + path_basename(path_dirname(path_dirname(interpreter)));
    const std::string python = venv(interpreter, name, {});
    if (python.empty()) continue;
    const auto before = probe_python(host_, python);
    const std::string site = before.value.sys_path.back().path.substr(root_.size() + 1);
    folder(site + "/relative/inner");
    folder(site + "/hidden");
    folder("outside");
    folder("with space");
    write(site + "/b.pth",
          "relative\n# comment\n\n   \nmissing\n" + at("outside") + "\nrelative/../relative/inner  \n");
    write(site + "/a.pth",
          at("with space") + "\r\n" + at("outside") + "/\nimport os; x = 1\nimport\tsys\n.\n");
    write(site + "/.hidden.pth", "hidden\n");
    write(site + "/c.pth.bak", "hidden\n");
    write(site + "/d.pth", "import-not-a-statement\n" + at("outside") + "/../with space\n");
    compare(python);
    const auto after = probe_python(host_, python);
    EXPECT_EQ(after.value.pth_code_lines.size(), 2u);
  }
}

TEST_F(RealPython, UvVenv) {
  std::string uv;
  for (const char* folder : {"/usr/local/bin", "/usr/bin"})
    if (host_.exists(path_join(folder, "uv"))) uv = path_join(folder, "uv");
  const std::string python = any_interpreter();
  if (python.empty()) GTEST_SKIP() << "no Python here";
  if (uv.empty()) {  // one wheel, which pip keeps in its cache
    const char* home = std::getenv("HOME");
    host_.variables["PIP_CACHE_DIR"] = std::string(home == nullptr ? "/tmp" : home) + "/.cache/pip";
    const ProcessResult installed =
        run({python, "-m", "pip", "install", "-q", "--no-deps", "--target", at("tools"), "uv"});
    uv = at("tools/bin/uv");
    if (!installed.ok() || !host_.exists(uv))
      GTEST_SKIP() << "uv is not here and pip cannot bring it: " << installed.err;
  }
  for (const std::string& interpreter : interpreters()) {
    const std::string name = "uv" + path_basename(path_dirname(path_dirname(interpreter)));
    if (!run({uv, "venv", "-q", "--offline", "-p", interpreter, at(name)}).ok()) continue;  // too old for uv
    compare(at(name + "/bin/python"));
    EXPECT_EQ(probe_python(host_, at(name)).value.kind, "uv");
    EXPECT_FALSE(probe_python(host_, at(name)).value.has_pip);
  }
}

TEST_F(RealPython, LegacyDevelopInstall) {
  const std::string base = any_interpreter();
  if (base.empty()) GTEST_SKIP() << "no Python here";
  if (!run({base, "-c", "import setuptools"}).ok()) GTEST_SKIP() << base << " has no setuptools";
  const std::string python = venv(base, "develop", {});
  if (python.empty()) GTEST_SKIP() << base << " has no venv module";
  const ProcessResult where = run(
      {base, "-c", "import setuptools, os; print(os.path.dirname(os.path.dirname(setuptools.__file__)))"});
  write("project/setup.py",
        "import setuptools\nsetuptools.setup(name='dev-thing', version='1.2', py_modules=['thing'])\n");
  write("project/thing.py", "");
  host_.variables["PYTHONPATH"] = where.out.substr(0, where.out.find('\n'));
  ProcessRequest request;
  request.argv = {python, "setup.py", "-q", "develop", "--no-deps"};
  request.working_directory = at("project");
  request.environment.emplace();
  for (const auto& [name, value] : host_.variables) request.environment->push_back(name + "=" + value);
  const auto done = run_process(request);
  if (!done || !done->ok()) GTEST_SKIP() << "this setuptools has no develop command";
  host_.variables.erase("PYTHONPATH");
  compare(python);
}

}  // namespace
}  // namespace scankit::probes
