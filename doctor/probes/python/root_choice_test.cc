// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_choice.h"
#include "doctor/probes/python/python_test_host.h"

namespace scankit {
namespace {

class Root : public PythonTree {
 protected:
  std::string choose(const std::optional<std::string>& requested = std::nullopt) {
    notes_.clear();
    const auto chosen = choose_python(*make_real_host(at("image")), requested, notes_);
    return chosen ? *chosen : "ERROR " + chosen.error().message;
  }
  std::vector<std::string> notes_;
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
    EXPECT_NE(refused.error().message.find(at(bad)), std::string::npos);
    EXPECT_FALSE(refused.error().hint.empty());
  }
  EXPECT_NE(root_folder("/").error().message.find("running system"), std::string::npos);
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
  EXPECT_EQ(notes_.at(0), "Python: /opt/conda/bin/python (in /opt/conda, the first one with torch)");
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
}  // namespace scankit
