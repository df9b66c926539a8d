// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/run/deaths.h"

namespace scankit::run {
namespace {

const std::string kBegin = "Traceback (most recent call last):\n";

TEST(PythonPlace, IsTheInnermostFrameOfATraceback) {
  const auto place = python_place(kBegin +
                                  "  File \"train.py\", line 9, in <module>\n"
                                  "    main()\n"
                                  "  File \"/x/model.py\", line 4, in forward\n"
                                  "    return selective_scan_cuda.fwd(u, delta)\n"
                                  "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
                                  "RuntimeError: CUDA error\n");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, "/x/model.py");
  EXPECT_EQ(place->line, 4u);
  EXPECT_EQ(place->function, "forward");
  EXPECT_EQ(place->source, "return selective_scan_cuda.fwd(u, delta)");
  EXPECT_FALSE(place->importing);
  EXPECT_EQ(place->module, "");
}

TEST(PythonPlace, KnowsAnImportByItsLine) {
  const std::string frame = "    [rank0]:   File \"a.py\", line 1, in <module>\n";
  EXPECT_EQ(python_place(kBegin + frame + "[rank0]:     import a.b as c\n")->module, "");
  const auto one = python_place(kBegin + frame + "    import a.b as c\n");
  EXPECT_TRUE(one->importing);
  EXPECT_EQ(one->module, "a.b");
  EXPECT_EQ(python_place(kBegin + frame + "    from a.c import d, e\n")->module, "a.c");
  const auto several = python_place(kBegin + frame + "    import a, b\n");
  EXPECT_TRUE(several->importing);
  EXPECT_EQ(several->module, "");
}

TEST(PythonPlace, KnowsTheFileThatIsImported) {
  const auto place = python_place(kBegin +
                                  "  File \"a.py\", line 1, in <module>\n    import torchvision\n"
                                  "  File \"<frozen importlib._bootstrap>\", line 241, in _call\n"
                                  "  File \"/v/lib/python3.11/site-packages/torchvision/ops.py\", line 7, in "
                                  "<module>\n    register()\nRuntimeError: x\n");
  EXPECT_TRUE(place->importing);
  EXPECT_EQ(place->module, "torchvision.ops");
  const auto started = python_place(kBegin +
                                    "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n"
                                    "  File \"/v/main.py\", line 7, in <module>\n    work()\n");
  EXPECT_FALSE(started->importing);
}

TEST(PythonPlace, ReadsTheDumpOfTheThreadThatFailed) {
  const auto place = python_place(
      "Fatal Python error: Segmentation fault\n\nThread 0x00007f01 (most recent call first):\n"
      "  File \"/v/wait.py\", line 3 in wait\n\nCurrent thread 0x00007f02 (most recent call first):\n"
      "  File \"<frozen importlib._bootstrap_external>\", line 1233 in create_module\n"
      "  File \"/x/test_crash.py\", line 2 in test_a\n  File \"/x/main.py\", line 1 in <module>\n"
      "\nExtension modules: numpy (total: 1)\n");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, "/x/test_crash.py");
  EXPECT_EQ(place->function, "test_a");
  EXPECT_TRUE(place->importing);
}

TEST(PythonPlace, LeavesOutWhatTorchrunPrintsOfItself) {
  const std::string worker =
      kBegin + "  File \"train.py\", line 1, in <module>\n    import a\nImportError: x\n";
  const std::string own = kBegin +
                          "  File \"/v/run.py\", line 9, in main\n    run(args)\n"
                          "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n";
  EXPECT_EQ(python_place(worker + own)->file, "train.py");
  const std::string other = kBegin + "  File \"later.py\", line 1, in f\n    x()\nValueError\n";
  EXPECT_EQ(python_place(worker + other)->file, "later.py");
  EXPECT_EQ(python_place(worker + other, 4)->file, "train.py");
}

TEST(PythonPlace, IsNothingWithoutOne) {
  EXPECT_FALSE(python_place(""));
  EXPECT_FALSE(python_place("error: x\n  File \"\n"));
  EXPECT_FALSE(python_place(kBegin + "  File \"<frozen importlib._bootstrap>\", line 2, in f\n"));
}

}  // namespace
}  // namespace scankit::run
