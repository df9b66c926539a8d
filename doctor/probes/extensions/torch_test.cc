// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class TorchOf : public PythonTree {
 protected:
  TorchOf() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages/";
  }
  Probed<Torch> probe() {
    const auto python = probe_python(host_, at("venv"));
    EXPECT_TRUE(python.present()) << python.note;
    return probe_torch(host_, python.value, probe_distributions(host_, python.value).value);
  }
  void package() {
    write(site_ + "torch/__init__.py", "");
    write(site_ + "torch/version.py",
          "__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\n"
          "git_version = 'abc'\nhip: Optional[str] = None\n");
    write(site_ + "torch-2.6.0.dist-info/METADATA", "Name: torch\nVersion: 2.6.0\n");
  }
  void expect_note(const Probed<Torch>& probed, ProbeState state, const std::string& part) {
    EXPECT_EQ(probed.state, state) << probed.note;
    EXPECT_NE(probed.note.english().find(part), std::string::npos) << probed.note;
  }
  std::string site_;
};

TEST_F(TorchOf, AbsenceIsAFact) {
  expect_note(probe(), ProbeState::Absent, "no directory of sys.path contains a torch package");
}

TEST_F(TorchOf, IsDescribedAlthoughItCannotBeImported) {
  package();
  write(site_ + "torch/lib/libc10.so", "<html>");
  write(site_ + "torch/lib/libtorch.so.1.bak", "");
  write(site_ + "torch/include/ATen/ATen.h", "#if !defined(_MSC_VER) && __cplusplus < 201402L\n");
  const auto probed = probe();
  expect_note(probed, ProbeState::Present, "libc10.so: ");
  EXPECT_EQ(probed.value.version, "2.6.0+cu124");
  EXPECT_EQ(probed.value.distribution_version, "2.6.0");
  EXPECT_EQ(probed.value.cuda, "12.4");
  EXPECT_EQ(probed.value.git, "abc");
  EXPECT_EQ(probed.value.hip, "");
  EXPECT_EQ(probed.value.cxx_standard, "14");
  EXPECT_EQ(probed.value.string_abi, "unknown");
  EXPECT_EQ(probed.value.libraries.size(), 1u);
}

TEST_F(TorchOf, SaysWhatIsIncomplete) {
  package();
  expect_note(probe(), ProbeState::Present, "torch/lib");
  ASSERT_EQ(::unlink(at(site_ + "torch/version.py").c_str()), 0);
  const auto without_version = probe();
  expect_note(without_version, ProbeState::Present, "version.py");
  EXPECT_EQ(without_version.value.version, "2.6.0");
  ASSERT_EQ(::unlink(at(site_ + "torch-2.6.0.dist-info/METADATA").c_str()), 0);
  ASSERT_EQ(::rmdir(at(site_ + "torch-2.6.0.dist-info").c_str()), 0);
  expect_note(probe(), ProbeState::Failed, "is incomplete: reinstall torch");
  ASSERT_EQ(::unlink(at(site_ + "torch/__init__.py").c_str()), 0);
  expect_note(probe(), ProbeState::Absent, "as after an incomplete uninstall");
}

TEST_F(TorchOf, DistInfoWithoutThePackageIsAFailure) {
  write(site_ + "torch-2.6.0.dist-info/METADATA", "Name: torch\nVersion: 2.6.0\n");
  expect_note(probe(), ProbeState::Failed,
              "lists torch 2.6.0, but no directory of sys.path contains the package");
}

TEST_F(TorchOf, AShadowingFileIsNoTorch) {
  package();
  host_.variables["PYTHONPATH"] = path_dirname(write("mine/torch.py", ""));
  expect_note(probe(), ProbeState::Failed, "which is not PyTorch");
}

TEST_F(TorchOf, UnreadableFoldersAreNotAbsence) {
  package();
  host_.denied = {at("venv/lib/python3.11/site-packages")};
  expect_note(probe(), ProbeState::Failed, "Permission denied");
}

TEST(TorchVersionFile, ReadsBothForms) {
  const std::string text =
      "from x import y\n__version__ = \"1.13.1+cu117\"\ncuda = '11.7'\nhip: Optional[str] = None\n";
  EXPECT_EQ(version_file_value(text, "__version__"), "1.13.1+cu117");
  EXPECT_EQ(version_file_value(text, "cuda"), "11.7");
  EXPECT_EQ(version_file_value(text, "hip"), "");
  EXPECT_EQ(version_file_value("__version__ = compute()\ncuda", "cuda"), "");
  EXPECT_EQ(demanded_cxx_standard("#if __cplusplus < 201703L\n#if __cplusplus < 202002L"), "20");
  EXPECT_EQ(demanded_cxx_standard("#if __cplusplus < 1"), "");
}

// What a real torch says of itself when it is imported, against what its files say.
TEST(RealTorch, MatchesItsFiles) {
  const char* python = std::getenv("SCANKIT_TEST_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SCANKIT_TEST_PYTHON names no Python with torch";
  const auto host = make_real_host();
  const auto probed = probe_python(*host, python);
  ASSERT_TRUE(probed.present()) << probed.note;
  const auto distributions = probe_distributions(*host, probed.value);
  const auto torch = probe_torch(*host, probed.value, distributions.value);
  ASSERT_TRUE(torch.present()) << torch.note;
  EXPECT_EQ(torch.note, "");
  EXPECT_TRUE(torch.value.version.starts_with(torch.value.distribution_version));
  EXPECT_TRUE(torch.value.string_abi == "old" || torch.value.string_abi == "new");
  EXPECT_GE(torch.value.cxx_standard, "14");
  EXPECT_GE(torch.value.libraries.size(), 5u);
  for (const Library& library : torch.value.libraries) EXPECT_FALSE(library.soname.empty()) << library.path;
}

}  // namespace
}  // namespace scankit::probes
