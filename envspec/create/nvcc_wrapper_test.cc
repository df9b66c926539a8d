// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/nvcc_wrapper.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "builder/fix/local_package.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"

namespace scankit::envspec {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// The program is run with an nvcc that prints its words.
class NvccWrapper : public testing::Test {
 protected:
  NvccWrapper() : folder_(TemporaryDirectory::create("scankit-nvcc-test").value()) {}

  std::string file(const std::string& name) const { return path_join(folder_.path(), name); }
  void write_nvcc(const std::string& name, const std::string& prefix) const {
    ASSERT_TRUE(make_directories(path_dirname(file(name))));
    ASSERT_TRUE(write_file_atomically(file(name),
                                      "#!/bin/sh\nprintf '" + prefix + "'\nprintf '[%s]' \"$@\"\n", 0755));
  }
  static std::string output(std::vector<std::string> argv) {
    ProcessRequest request;
    request.argv = std::move(argv);
    const auto result = run_process(request);
    return result && result->ok() ? result->out : "failed";
  }
  // What nvcc gets of these words.
  std::string passed(std::vector<std::string> words) const {
    const fix::WithVariables set(Variables{{"PYTORCH_NVCC", "printf '[%s]'"}});
    const auto variable = write_nvcc_wrapper(*make_real_host(), folder_.path());
    if (!variable || variable->first != "PYTORCH_NVCC") return "not written";
    words.insert(words.begin(), variable->second);
    return output(std::move(words));
  }

  const TemporaryDirectory folder_;
};

TEST_F(NvccWrapper, LeavesLineInfoOutAndNothingElse) {
  EXPECT_EQ(passed({"-c", "a b.cu", "-DX=\"y, z\"", "", "-Xptxas", "-v"}),
            "[-c][a b.cu][-DX=\"y, z\"][][-Xptxas][-v]");
  EXPECT_FALSE(line_info_note(folder_.path(), "scan==1.0")) << "nothing was left out";
  EXPECT_EQ(passed({"-lineinfo", "-c", "--generate-line-info", "a.cu"}), "[-c][a.cu]");
  const auto note = line_info_note(folder_.path(), "scan==1.0");
  ASSERT_TRUE(note);
  EXPECT_TRUE(english(*note).starts_with("scan==1.0 was compiled without -lineinfo")) << english(*note);
}

TEST_F(NvccWrapper, LooksIntoTheListsForPtxas) {
  EXPECT_EQ(passed({"-Xptxas", "-v,-lineinfo,-O3", "a.cu"}), "[-Xptxas][-v,-O3][a.cu]");
  EXPECT_EQ(passed({"-Xptxas=-lineinfo,-v", "a.cu"}), "[-Xptxas=-v][a.cu]");
  EXPECT_EQ(passed({"--ptxas-options", "--generate-line-info", "a.cu"}), "[a.cu]") << "no empty list";
  EXPECT_EQ(passed({"--ptxas-options=-lineinfo", "a.cu"}), "[a.cu]");
  EXPECT_EQ(passed({"a.cu", "-Xptxas"}), "[a.cu][-Xptxas]") << "for nvcc to refuse";
  EXPECT_TRUE(line_info_note(folder_.path(), "scan"));
}

TEST_F(NvccWrapper, CallsTheNvccThatTorchWouldCall) {
  write_nvcc("home/bin/nvcc", "home ");
  write_nvcc("path/nvcc", "path ");
  const auto called = [&](const std::string& home, const std::string& path) {
    const fix::WithVariables set(Variables{
        {"PYTORCH_NVCC", ""}, {"CUDA_HOME", home}, {"CUDA_PATH", path}, {"PATH", file("path") + ":/bin"}});
    const auto variable = write_nvcc_wrapper(*make_real_host(), folder_.path());
    return variable ? output({variable->second, "a.cu"}) : "not written";
  };
  EXPECT_EQ(called(file("home"), ""), "home [a.cu]");
  EXPECT_EQ(called("", file("home")), "home [a.cu]");
  EXPECT_EQ(called("", ""), "path [a.cu]");
}

}  // namespace
}  // namespace scankit::envspec
