// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class ChoosePython : public PythonTree {
 protected:
  ChoosePython() : before_(current_directory()) {
    base_ = install("base");
    EXPECT_EQ(::chdir(folder("work").c_str()), 0);
  }
  ~ChoosePython() override { EXPECT_EQ(::chdir(before_.c_str()), 0); }
  std::string choose(const std::optional<std::string>& requested = std::nullopt) {
    notes_.clear();
    const auto chosen = choose_python(host_, requested, notes_);
    return chosen ? *chosen : "ERROR " + english(chosen.error().message);
  }
  void put_torch(const std::string& prefix, const std::string& version) {
    write(prefix + "/lib/python3.11/site-packages/torch/version.py", "__version__ = '" + version + "'\n");
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> lines;
    for (const Message& note : notes_) lines.push_back(english(note));
    return lines;
  }
  std::string before_, base_;
  std::vector<Message> notes_;
};

TEST_F(ChoosePython, GoesThroughTheSourcesInOrder) {
  EXPECT_EQ(choose(), "ERROR no Python found: searched VIRTUAL_ENV, ./.venv, CONDA_PREFIX and PATH");
  link(base_, "path/python3");
  EXPECT_EQ(choose(), at("path/python3"));
  install("conda");
  host_.variables["CONDA_PREFIX"] = at("conda");
  EXPECT_EQ(choose(), at("conda/bin/python"));
  make_venv("work/.venv", base_);
  EXPECT_EQ(choose(), at("work/.venv/bin/python"));
  make_venv("active", base_);
  host_.variables["VIRTUAL_ENV"] = at("active");
  EXPECT_EQ(choose(), at("active/bin/python"));
  EXPECT_EQ(english(notes_.front()), "Python: " + at("active/bin/python") + " (VIRTUAL_ENV)");
  EXPECT_EQ(choose(at("conda")), at("conda/bin/python"));
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_EQ(english(notes_[0]), "Python: " + at("conda/bin/python") + " (--python)");
  EXPECT_EQ(choose("../conda"), at("conda/bin/python"));
  EXPECT_EQ(choose(".venv"), at("work/.venv/bin/python"));
}

TEST_F(ChoosePython, TakesNothingInThePlaceOfAnActiveEnvironment) {
  link(base_, "path/python");
  install("conda");
  host_.variables["CONDA_PREFIX"] = at("conda");
  host_.variables["VIRTUAL_ENV"] = at("deleted");
  EXPECT_EQ(choose(), "ERROR VIRTUAL_ENV: no Python at " + at("deleted") + ": no such file");
  EXPECT_TRUE(notes_.empty());
  host_.variables.erase("VIRTUAL_ENV");
  write("work/.venv/pyvenv.cfg", "home = " + at("gone/bin") + "\nversion = 3.11.7\n");
  link(at("gone/bin/python3.11"), "work/.venv/bin/python");
  BrokenEnvironment broken;
  const auto chosen = choose_python(host_, std::nullopt, notes_, &broken);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, Errc::ToolFailed);
  EXPECT_EQ(broken.origin, "./.venv");
  EXPECT_NE(
      english(broken.reason).find("the Python this venv was made from (" + at("gone/bin/python3.11") + ")"),
      std::string::npos);
  EXPECT_NE(english(chosen.error().hint).find("-m venv --clear " + at("work/.venv")), std::string::npos);
}

TEST_F(ChoosePython, PassesOverAFileThatNamesAnEnvironment) {
  link(base_, "path/python");
  write("work/.venv", "my-project\n");
  EXPECT_EQ(choose(), at("path/python"));
}

TEST_F(ChoosePython, AVenvWhoseBaseHasNoStandardLibraryIsBroken) {
  link(base_, "path/python");
  write("work/.venv/pyvenv.cfg", "home = " + at("gone/bin") + "\n");
  write("work/.venv/bin/python", interpreter_bytes(), 0755);
  EXPECT_NE(choose().find("has no standard library"), std::string::npos) << choose();
}

TEST_F(ChoosePython, ARequestIsNotReplaced) {
  link(base_, "path/python");
  EXPECT_EQ(choose(at("missing")), "ERROR no Python at " + at("missing") + ": no such file");
  EXPECT_EQ(choose(""), "ERROR no Python at \"\": the path is empty");
}

TEST_F(ChoosePython, ListsTheOthersThatHoldTorchOnce) {
  make_venv("active", base_);
  host_.variables["VIRTUAL_ENV"] = at("active");
  put_torch("active", "2.11.0+cu130");
  put_torch("base", "2.6.0");
  link(base_, "path/python");
  link("python", "path/python3");  // the same interpreter under another name
  install("home/.pyenv/versions/3.11.7");
  put_torch("home/.pyenv/versions/3.11.7", "2.9.1");
  install("home/.pyenv/versions/3.11.5");
  install("home/miniconda3/envs/ml");
  put_torch("home/miniconda3/envs/ml", "2.5.1");
  EXPECT_EQ(choose(), at("active/bin/python"));
  EXPECT_EQ(notes(), (std::vector<std::string>{
                         "Python: " + at("active/bin/python") + " (VIRTUAL_ENV)",
                         "also has torch 2.6.0: " + at("path/python") + " (PATH)",
                         "also has torch 2.9.1: " + at("home/.pyenv/versions/3.11.7/bin/python") + " (pyenv)",
                         "also has torch 2.5.1: " + at("home/miniconda3/envs/ml/bin/python") + " (conda)"}));
}

TEST_F(ChoosePython, ListsTheEnvironmentsOfMicromamba) {
  make_venv("active", base_);
  host_.variables["VIRTUAL_ENV"] = at("active");
  host_.variables["MAMBA_ROOT_PREFIX"] = at("data/mamba");
  for (const std::string root : {"home/micromamba", "home/.local/share/mamba", "data/mamba"}) {
    install(root + "/envs/ml");
    put_torch(root + "/envs/ml", "2.5.1");
  }
  EXPECT_EQ(choose(), at("active/bin/python"));
  const auto listed = [&](const std::string& root) {
    return "also has torch 2.5.1: " + at(root + "/envs/ml/bin/python") + " (conda)";
  };
  EXPECT_EQ(notes(), (std::vector<std::string>{"Python: " + at("active/bin/python") + " (VIRTUAL_ENV)",
                                               listed("home/micromamba"), listed("home/.local/share/mamba"),
                                               listed("data/mamba")}));
}

TEST_F(ChoosePython, SaysThroughWhichScriptItWent) {
  write("path/python", "#!/bin/sh\nexec " + base_ + " \"$@\"\n", 0755);
  EXPECT_EQ(choose(), base_);
  EXPECT_EQ(english(notes_.front()),
            "Python: " + base_ + " (PATH, through the script " + at("path/python") + ")");
}

}  // namespace

namespace {

class Root : public PythonTree {
 protected:
  std::string choose(const std::optional<std::string>& requested = std::nullopt) {
    notes_.clear();
    const auto chosen = choose_python(*make_real_host(at("image")), requested, notes_);
    return chosen ? *chosen : "ERROR " + english(chosen.error().message);
  }
  std::vector<Message> notes_;
};

TEST_F(Root, IsAFolderThatHoldsASystem) {
  folder("image/usr");
  EXPECT_EQ(root_folder(at("image") + "/").value(), at("image"));
  folder("empty");
  write("file", "");
  write("packed/oci-layout", "{}");
  folder("packed/etc");
  for (const char* bad : {"empty", "file", "missing", "packed"}) {
    const auto refused = root_folder(at(bad));
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
    EXPECT_NE(english(refused.error().message).find(at(bad)), std::string::npos);
    EXPECT_FALSE(refused.error().hint.empty());
  }
  EXPECT_NE(english(root_folder("/").error().message).find("running system"), std::string::npos);
}

TEST_F(Root, TakesThePythonThatHoldsTorch) {
  folder("image");
  EXPECT_NE(choose().find("ERROR no Python found in the root"), std::string::npos);
  install("image/usr");
  EXPECT_EQ(choose(), "/usr/bin/python");
  install("image/opt/conda");
  EXPECT_EQ(choose(), "/usr/bin/python");  // what its PATH would give, while none holds torch
  write("image/opt/conda/lib/python3.11/site-packages/torch/version.py", "__version__ = '2.9.0'\n");
  EXPECT_EQ(choose(), "/opt/conda/bin/python");
  EXPECT_EQ(english(notes_.at(0)), "Python: /opt/conda/bin/python (in /opt/conda, the first one with torch)");
  EXPECT_EQ(choose("/usr"), "/usr/bin/python");
}

TEST_F(Root, NeverLeavesThroughALink) {
  install("outside");
  folder("image/usr/bin");
  link(at("outside/bin/python3.11"), "image/usr/bin/python3");  // absolute: means a file inside the root
  link("../../../../../../../" + at("outside/bin/python3.11"), "image/usr/bin/python");
  EXPECT_NE(choose().find("ERROR no Python found"), std::string::npos);
  install("image" + at("outside"));  // the same path, inside
  EXPECT_EQ(choose(), "/usr/bin/python");
}

// The caller's variables belong to the running machine.
TEST_F(Root, TheCallersEnvironmentDoesNotLeakIn) {
  install("image/usr");
  install("image/venv");
  ::setenv("VIRTUAL_ENV", "/venv", 1);
  EXPECT_EQ(choose(), "/usr/bin/python");
  ::unsetenv("VIRTUAL_ENV");
}

}  // namespace

}  // namespace scankit::probes
