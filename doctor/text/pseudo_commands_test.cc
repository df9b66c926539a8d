// SPDX-License-Identifier: Apache-2.0
// What build, fix, restore and validate tell people, in the invented language: the program itself is run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/text/pseudo_data.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

constexpr const char* kBracket = "\xE2\x9F\xA6";  // opens every sentence of the invented language
const std::string kModules = SCANKIT_SOURCE_DIR "/validate/tests/modules/";

struct Said {
  int status = -1;
  std::string out, err;
  std::string all() const { return out + err; }
};

class PseudoCommands : public ::testing::Test {
 protected:
  PseudoCommands() : folder_(*TemporaryDirectory::create("pseudo-commands")) {
    const auto made = make_pseudo_mo(SCANKIT_SOURCE_DIR "/doctor/text/scankit.pot", folder_.path());
    EXPECT_TRUE(made) << made.error().message;
    mo_ = made.value_or("");
  }

  std::string in_folder(const std::string& name) const { return path_join(folder_.path(), name); }

  Said run(const std::vector<std::string>& words) const {
    ProcessRequest request;
    request.argv = {SCANKIT_EXECUTABLE, "--lang", mo_};
    request.argv.insert(request.argv.end(), words.begin(), words.end());
    request.environment = {{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + folder_.path()}};
    request.working_directory = folder_.path();
    request.timeout = std::chrono::minutes(4);
    const auto ran = run_process(request);
    EXPECT_TRUE(ran) << ran.error().message;
    return ran ? Said{ran->exit_code, ran->out, ran->err} : Said{};
  }

  // `names`: what may be said as it is, beside the words of the command line.
  void expect_said(const Said& said, const std::vector<std::string>& command, Json names = Json::array()) {
    std::string shown = "scankit";
    for (const std::string& word : command) {
      names.push_back(word);
      shown += " " + word;
    }
    PseudoData data(names);
    data.add_words(folder_.path() + " scankit " + command.front());
    for (const char* system : {"No such file or directory", "Is a directory", "Not a directory"})
      data.add_whole(system);
    EXPECT_NE(said.all().find(kBracket), std::string::npos) << shown << ": " << said.all();
    for (const std::string& problem : untranslated(without_legend(said.all()), data))
      ADD_FAILURE() << shown << ": " << problem << "\nin " << said.all();
  }

  // An environment without torch; "" where this machine has no Python that can make one.
  std::string empty_environment() const {
    ProcessRequest request;
    request.argv = {"/usr/bin/python3", "-m", "venv", "--without-pip", in_folder("env")};
    const auto made = run_process(request);
    return made && made->ok() ? in_folder("env/bin/python") : "";
  }

  TemporaryDirectory folder_;
  std::string mo_;
};

// Without examples, which are command lines, and without the names of options, values and places: whatever
// has a letter of the invented language is none.
std::string without_options(const std::string& help) {
  static const std::regex names("\\[OPTIONS\\]|\\[?<[A-Za-z|=]+>(\\.\\.\\.)?\\]?|--?[a-z0-9]+(-[a-z0-9]+)*");
  std::string out;
  for (std::size_t at = 0; at < help.size();) {
    const auto end = std::min(help.find('\n', at), help.size());
    if (help.compare(at, 10, "  scankit ") != 0) out += help.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return std::regex_replace(out, names, "");
}

void add_paths(const std::string& text, Json& names) {
  for (auto at = text.find('/'); at != std::string::npos && at < text.size(); at = text.find('/', at)) {
    const auto end = std::min(text.find_first_of(" :\n;)\xE2", at), text.size());
    names.push_back(text.substr(at, end - at));
    at = end;
  }
}

TEST_F(PseudoCommands, SayTheirHelp) {
  const Json frame = {"Options:", "in",       "cause", "text",       "json", "junit", "sarif",
                      "github",   "markdown", "html",  "prometheus", "20s",  "all",   "selective_scan_cuda"};
  for (const char* command :
       {"build", "fix", "restore", "validate", "doctor", "snapshot", "explain", "selftest"}) {
    Said said = run({command, "--help"});
    said.out = without_options(said.out);
    expect_said(said, {command, "--help"}, frame);
  }
  for (const char* command : {"init", "check", "diff", "schema"}) {
    Said said = run({"env", command, "--help"});
    said.out = without_options(said.out);
    Json names = frame;
    if (command == std::string("diff")) names.insert(names.end(), {"a", "b"});  // its two places
    expect_said(said, {"env", command, "--help"}, names);
  }
  for (const char* command : {"run", "init", "schema"}) {
    Said said = run({"ci", command, "--help"});
    said.out = without_options(said.out);
    Json names = frame;
    names.insert(names.end(), {"kind", "policy", "gitlab", "pre-commit", "slurm-healthcheck",
                               "kubernetes-probe", "node-problem-detector"});
    expect_said(said, {"ci", command, "--help"}, names);
  }
}

TEST_F(PseudoCommands, SayWhatIsWrongWithASpec) {
  const std::vector<std::string> specs = {"schema: 1\ntocrh: {}\n",
                                          "schema: 2\n",
                                          "schema: [1\n",
                                          "schema: 1\ngpus: 3\n",
                                          "schema: 1\npython: {version: 3.1}\n",
                                          "a: &b 1\n",
                                          ""};
  for (const std::string& spec : specs) {
    ASSERT_TRUE(write_file_atomically(in_folder("scankit.yaml"), spec));
    const std::vector<std::string> command = {"env", "check"};
    Json names = {"scankit.yaml", "tocrh",          "torch",
                  "gpus",         "sm_90",          "schema: 1",
                  "3.1",          "python.version", "end of sequence flow not found",
                  "YAML",         "schema",         "UTF-8"};
    expect_said(run(command), command, names);
  }
}

TEST_F(PseudoCommands, SayWhatIsWrongWithTheCommandLine) {
  ASSERT_TRUE(write_file_atomically(in_folder("text"), "no module"));
  const std::vector<std::vector<std::string>> mistakes = {
      {"build", "--arch", "hopper"},
      {"build", "--bogus"},
      {"build", "--bogus", "--more"},
      {"build", "--jobs", "many"},
      {"build", "--jobs"},
      {"fix", "--dry-run", "--yes"},
      {"explain", "quince", "marmalade"},
      {"validate", "--timeout", "0"},
      {"validate", "--device", "tpu"},
      {"build", "--python", "/nonexistent/python"},
      {"build", "--show-manifest", "/nonexistent/module.so"},
      {"build", "--show-manifest", in_folder("text")},
      {"fix", "--arch", "hopper"},
      {"fix", "--python", "/nonexistent/python"},
      {"restore", "--python", "/nonexistent/python"},
      {"validate", "--case", "q999"},
      {"validate", "--module", "/nonexistent/module.so"},
      {"validate", "--module", "/"},
      {"validate", "--python", "/nonexistent/python"},
  };
  for (const auto& mistake : mistakes) {
    const Said said = run(mistake);
    EXPECT_NE(said.status, 0) << said.all();
    expect_said(said, mistake,
                {"selective_scan_cuda", "selective_scan_cuda_core", "selective_scan_cuda_oflex",
                 "causal_conv1d_cuda", "<N>", "cpu, cuda, all", "1000000"});
  }
}

// With an NVRTC here it cannot make code for that; without one it says so.
TEST_F(PseudoCommands, SayWhyNothingCanBeBuilt) {
  const std::vector<std::string> command = {"build", "--arch", "sm_999"};
  const Said said = run(command);
  EXPECT_EQ(said.status, 5) << said.all();
  Json names = {"libnvrtc",
                "pip install nvidia-cuda-nvrtc-cu12==12.9.86",
                "-m pip install nvidia-cuda-nvrtc-cu12==12.9.86",
                "/usr/bin/python3",
                "python",
                "PATH"};
  add_paths(said.all(), names);
  expect_said(said, command, names);
}

TEST_F(PseudoCommands, SayWhatTheyFindInAnEnvironmentWithoutTorch) {
  const std::string python = empty_environment();
  if (python.empty()) GTEST_SKIP() << "no Python here makes an environment";
  const Json names = {"selective_scan_cuda", "causal_conv1d_cuda", "torch"};
  const Said plan = run({"fix", "--dry-run", "--python", python});
  EXPECT_EQ(plan.status, 1) << plan.all();
  expect_said(plan, {"fix", "--dry-run", "--python", python}, names);
  const Said undone = run({"restore", "--python", python});
  EXPECT_EQ(undone.status, 0) << undone.all();
  expect_said(undone, {"restore", "--python", python}, names);
  const Said judged = run({"validate", "--python", python, "--seed", "7"});
  EXPECT_EQ(judged.status, 4) << judged.all();
  expect_said(judged, {"validate", "--python", python, "--seed", "7", "quick"}, names);
}

TEST_F(PseudoCommands, KeepWhatProgramsReadInEnglish) {
  const Said cases = run({"validate", "--list-cases"});
  EXPECT_EQ(cases.out.find(kBracket), std::string::npos);
  const std::string python = empty_environment();
  if (python.empty()) GTEST_SKIP() << "no Python here makes an environment";
  const Said judged = run({"validate", "--json", "--python", python});
  EXPECT_EQ(judged.out.find(kBracket), std::string::npos) << judged.out;
  EXPECT_EQ(Json::parse(judged.out)["not_completed"], "there is no torch in this Python");
  EXPECT_NE(judged.err.find(kBracket), std::string::npos) << judged.err;
}

// These need a Python with torch, which the variable names; without --yes nothing is changed.
class PseudoTorch : public PseudoCommands {
 protected:
  void SetUp() override {
    const char* named = std::getenv("SCANKIT_TEST_PYTHON");
    if (named == nullptr || named[0] == 0) GTEST_SKIP() << "SCANKIT_TEST_PYTHON names no Python with torch";
    python_ = named;
  }
  std::string python_;
};

TEST_F(PseudoTorch, SaysThePlanOfAFix) {
  const Said said = run({"fix", "--dry-run", "--python", python_, "--target", in_folder("elsewhere")});
  Json names = {"selective_scan_cuda",
                "selective_scan_cuda.abi3.so",
                "torch",
                "pip",
                "install",
                "export",
                "PYTHONPATH",
                "nvidia-cuda-nvrtc",
                "nvidia-cuda-nvrtc-cu12",
                "causal_conv1d_cuda",
                "scankit restore --python",
                "scankit validate --quick --python",
                "--module selective_scan_cuda",
                "-m pip install nvidia-cuda-nvrtc-cu12==12.9.86"};
  add_paths(said.all(), names);
  expect_said(said, {"fix", "--dry-run", "--target"}, names);
}

TEST_F(PseudoTorch, SaysHowAModuleFails) {
  const std::string contract_case = "q011-fp32-b2-d6-l31-n3-g3-D";
  for (const char* module : {"drops_last_odd_step", "returns_input_memory", "modifies_its_input",
                             "large_noise", "lacks_bwd", "cuda_only"}) {
    const std::string path = kModules + module + ".py";
    const std::vector<std::string> command = {"validate", "--python", python_,      "--module",
                                              path,       "--seed",   "7",          "--device",
                                              "cpu",      "--case",   contract_case};
    const Said said = run(command);
    Json names = {"cpu",
                  "fwd",
                  "bwd",
                  "quick",
                  "float32",
                  "out_z of bwd",
                  "RuntimeError: Expected u.is_cuda() to be true, but got false."};
    for (const char* tensor : {"out", "last_state", "u",  "delta", "A",  "B",  "C", "D",    "z",   "dz",
                               "du",  "ddelta",     "dA", "dB",    "dC", "dD", "x", "dout", "inf", "nan"})
      names.push_back(tensor);
    expect_said(said, command, names);
  }
}

}  // namespace
}  // namespace scankit
