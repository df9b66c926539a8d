// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/explainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "doctor/logs/lines.h"
#include "doctor/model/finding.h"

namespace scankit::logs {
namespace {

std::string root_of(const Log& log) {
  return !log.hits.empty() && log.hits.front().role == "root" ? log.hits.front().cause : "nothing";
}
std::string root_of(const std::string& text) { return root_of(explain_text(text)); }

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SCANKIT_SOURCE_DIR) / "doctor/tests/logs"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// CAUSE.SITUATION.txt; "note" for an error that is no fault of the installation, "warning" for a line that may be
// ignored, "nothing" for none.
TEST(Logs, OfTheCorpusAreExplained) {
  EXPECT_GE(corpus().size(), 30u);
  for (const auto& path : corpus()) {
    const std::string name = path.filename();
    std::string expected = name.substr(0, name.find('.'));
    const auto log = explain_log(path);
    ASSERT_TRUE(log) << name;
    if (expected == "warning") {
      ASSERT_FALSE(log->hits.empty()) << name;
      EXPECT_EQ(log->hits.front().role, "warning") << name;
      expected = "nothing";
    }
    if (expected == "note") expected = "";
    EXPECT_EQ(root_of(*log), expected) << name;
  }
}

TEST(Logs, NameTheSymbolThatIsMissing) {
  const Log log = explain_text(
      "ImportError: /x/lib/python3.10/site-packages/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so: "
      "undefined symbol: _ZN3c104cuda9SetDeviceEi\n");
  ASSERT_FALSE(log.hits.empty());
  const LogHit& hit = log.hits.front();
  EXPECT_EQ(hit.cause, "torch_version_mismatch");
  EXPECT_EQ(hit.module, "selective_scan_cuda");
  EXPECT_NE(hit.meaning.english().find("c10::cuda::SetDevice(int)"), std::string::npos) << hit.meaning;
}

// pip's isolated environments have no torch; for a program, it is a package that is missing.
TEST(Logs, TellABuildWithoutTorchFromAProgram) {
  const std::string error = "ModuleNotFoundError: No module named 'torch'\n";
  const auto traceback = [&](const std::string& file) {
    return "Traceback (most recent call last):\n  File \"" + file +
           "\", line 1, in <module>\n    import torch\n" + error;
  };
  EXPECT_EQ(root_of(traceback("train.py")), "missing_python_dependency");
  EXPECT_EQ(root_of(traceback("setup.py")), "torch_missing_at_build");
  EXPECT_EQ(root_of(traceback("<string>")), "torch_missing_at_build");
  EXPECT_EQ(root_of(error), "torch_missing_at_build");
}

// gcc quotes as the locale does, in three bytes each; pages that show a log in Markdown lose underscores.
TEST(Logs, AreReadAsPagesAndLocalesShowThem) {
  EXPECT_EQ(root_of("x.h:40:13: error: \xe2\x80\x98uint32_t\xe2\x80\x99 was not declared in this scope\n"),
            "include_missing_in_sources");
  EXPECT_EQ(root_of("ImportError: /x/causal_conv1d_cuda.so: undefined symbol: "
                    "*ZNK3c1017SymbolicShapeMeta18init*is_contiguousEv**\n"),
            "torch_version_mismatch");
  EXPECT_EQ(root_of("unable to execute '/usr/local/cuda/bin/nvcc': No such file or directory\n"),
            "nvcc_missing");
}

// CUDA 13 keeps thrust where nvcc finds it by itself. A .cu file that lacks it has a toolkit without it.
TEST(Logs, TellMovedHeadersFromMissingOnesByTheFileThatIncludesThem) {
  const std::string rest = ":1:10: fatal error: thrust/version.h: No such file or directory\n";
  EXPECT_EQ(root_of("/b/csrc/scan_fwd.cu" + rest), "cuda_headers_missing");
  EXPECT_EQ(root_of("/b/csrc/scan.cpp" + rest), "cuda_headers_changed");
}

// What no toolkit can repair.
TEST(Logs, OfRocmAndMacosDoNotAskForNvcc) {
  const std::string error = "NameError: name 'bare_metal_version' is not defined\n";
  EXPECT_EQ(root_of(error), "nvcc_missing");
  EXPECT_EQ(root_of("torch.__version__  = 2.7.0+rocm6.3\n" + error), "rocm_torch");
  EXPECT_EQ(root_of("/private/var/folders/rd/T/setup.py:77: UserWarning\n" + error), "macos");
}

// By the real symbol index: these names' histories are what the wheels of those releases say.
TEST(Logs, DateTheTorchNamesThatAreMissing) {
  const std::string file =
      "/x/lib/python3.10/site-packages/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so";
  const auto fact = [](const LogHit& hit, const std::string& name) {
    const auto found = std::ranges::find(hit.facts, name, &LogFact::name);
    return found == hit.facts.end() ? "" : found->value;
  };
  const Log drifted = explain_text("ImportError: " + file + ": undefined symbol: _ZN3c104cuda9SetDeviceEi\n");
  ASSERT_FALSE(drifted.hits.empty());
  EXPECT_EQ(fact(drifted.hits[0], "exported_by"), "torch 2.1-2.2");
  EXPECT_NE(drifted.hits[0].meaning.english().find("; torch 2.1-2.2 exports it"), std::string::npos);
  ASSERT_EQ(drifted.built_for.size(), 1u);
  EXPECT_EQ(drifted.built_for[0].file, file);
  EXPECT_EQ(drifted.built_for[0].torch_min, "2.1");
  EXPECT_EQ(drifted.built_for[0].torch_max, "2.2");

  const Log strings =
      explain_text("ImportError: " + file + ": undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n");
  EXPECT_EQ(fact(strings.hits[0], "exported_by"), "torch 2.6 or older");
  EXPECT_EQ(fact(strings.hits[0], "exported_with_other_string_abi_by"), "torch 2.7 or newer");
  ASSERT_EQ(strings.built_for.size(), 1u);
  EXPECT_EQ(strings.built_for[0].string_abi, "old");
  // A flag of the set-up script makes old strings with any torch's headers.
  EXPECT_EQ(strings.built_for[0].torch_max, std::nullopt);

  const Log nobodys = explain_text("ImportError: " + file + ": undefined symbol: _ZN2at12no_such_nameEv\n");
  EXPECT_NE(nobodys.hits[0].meaning.english().find("no known release of torch exports it"),
            std::string::npos);
  EXPECT_TRUE(nobodys.built_for.empty());
}

TEST(Logs, TellTheOwnersOfSymbolsApart) {
  const auto of = [](const std::string& symbol) {
    return root_of("ImportError: /x/m.cpython-311-x86_64-linux-gnu.so: undefined symbol: " + symbol);
  };
  EXPECT_EQ(
      of("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
      "abi_cxx11_mismatch");
  EXPECT_EQ(of("_ZN3c105ErrorC2ENS_14SourceLocationESs"), "abi_cxx11_mismatch");
  EXPECT_EQ(of("_ZN2at4_ops10zeros_like4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEE..."),
            "torch_version_mismatch");
  EXPECT_EQ(of("_Z24silu_and_mul_nvfp4_quantRN2at6TensorES1_S1_S1_"), "own_symbol_undefined");
  EXPECT_EQ(of("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv"), "libstdcxx_too_old");
  EXPECT_EQ(of("_PyThreadState_UncheckedGet"), "python_abi_tag_mismatch");
  EXPECT_EQ(of("THPVariableClass"), "torch_not_imported_first");
  EXPECT_EQ(of("cudaLibraryGetKernel, version libcudart.so.12"), "ld_library_path_shadow");
  EXPECT_EQ(of("cuMemCreate"), "driver_too_old");
  EXPECT_EQ(of("fcntl64, version GLIBC_2.28"), "glibc_too_old");
}

TEST(Logs, PreferTheFirstExceptionOfAChainAndTheLastChain) {
  const std::string chain =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import x_cuda\n"
      "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 2, in <module>\n    x\n"
      "RuntimeError: x_cuda is not installed\n";
  EXPECT_EQ(root_of(chain), "missing_cudart");
  const std::string other =
      "Traceback (most recent call last):\n  File \"c.py\", line 3, in f\n    g()\n"
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  EXPECT_EQ(root_of(chain + other), "no_kernel_image");
  EXPECT_EQ(root_of(other + chain), "missing_cudart");
}

TEST(Logs, ThatShowNoErrorHaveNoRoot) {
  for (const char* text :
       {"Collecting torch\n  Downloading torch-2.5.1-cp310-cp310-linux_x86_64.whl\n"
        "Successfully installed torch-2.5.1\n",
        "UserWarning: No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'\nbuilt\n",
        "5 passed in 0.1s\n", "\n\n",
        "Precompiled wheel not found. Building from source...\n"
        "Successfully installed mamba-ssm-2.2.4\n"}) {
    const Log log = explain_text(text);
    EXPECT_EQ(root_of(log), "nothing") << text;
  }
}

TEST(Logs, KeepErrorsThatNoRuleKnows) {
  const Log log = explain_text("fine\nZeroDivisionError: division by zero\n");
  EXPECT_EQ(root_of(log), "nothing");
  ASSERT_EQ(log.unexplained.size(), 1u);
  EXPECT_EQ(log.unexplained[0].line, 2u);
}

// Docker build, srun, CI and torchrun put something before each line, of a width that may change.
TEST(Logs, AreReadBehindThePrefixesOfProgramsThatPassThemOn) {
  const auto frames = [](const std::string& before, const std::string& later) {
    return root_of(
        before + "Traceback (most recent call last):\n" + before +
        "  File \"/v/lib/python3.11/site-packages/torch/__init__.py\", line 409, in <module>\n" + later +
        "    from torch._C import *\n" + later +
        "ImportError: libcupti.so.12: cannot open shared object file: No such file or directory\n");
  };
  EXPECT_EQ(frames("#12 9.876 ", "#12 10.01 "), "torch_incomplete");
  EXPECT_EQ(frames("0: ", "0: "), "torch_incomplete");
  EXPECT_EQ(frames("2026-11-26T08:00:00.1234567Z ", "2026-11-26T08:00:01.1Z "), "torch_incomplete");
  EXPECT_EQ(frames("[rank0]: ", "[rank0]: "), "torch_incomplete");
}

// rich draws a box around the frames; the exception follows below it.
TEST(Logs, ReadTracebacksInBoxes) {
  EXPECT_EQ(
      root_of("ModuleNotFoundError: No module named 'einops'\n"
              "╭───── Traceback (most recent call last) ─────╮\n"
              "│ /v/site-packages/torch/__init__.py:409 in <module> │\n"
              "╰──────────────────────────────────────────────╯\n"
              "ImportError: libcufile.so.0: cannot open shared object file: No such file or directory\n"),
      "torch_incomplete");
}

// What a destructor raises follows from the error that the program ended with.
TEST(Logs, PassOverExceptionsThatPythonIgnores) {
  EXPECT_EQ(root_of("/usr/bin/ld: cannot find -lcurand\n"
                    "Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x7f>\n"
                    "Traceback (most recent call last):\n  File \"a.py\", line 102, in __del__\n"
                    "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n"),
            "link_library_missing");
}

// A program that goes on after its import failed ends with another error.
TEST(Logs, PreferTheFailedImportToItsSymptom) {
  const std::string symptom =
      "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
      "AttributeError: '_OpNamespace' 'fbgemm' object has no attribute 'jagged_2d_to_dense'\n";
  EXPECT_EQ(root_of("/x/fbgemm_gpu/fbgemm_gpu_py.so: undefined symbol: _ZNK5torch8autograd4Node4nameEv\n" +
                    symptom),
            "torch_version_mismatch");
  EXPECT_EQ(root_of(symptom), "module_not_built");
}

// By a terminal within a word, by a chat or a box between two.
TEST(Logs, ReadAMessageThatWasWrapped) {
  EXPECT_EQ(root_of("ImportError: /root/miniconda3/envs/dodnet/lib/python3.8/site-packages/MSDA.so: undefin\n"
                    "ed symbol: _ZN2at4_ops10zeros_like4callERKNS_6TensorE\n"),
            "torch_version_mismatch");
  EXPECT_EQ(root_of("RuntimeError: DataLoader worker (pid 47) is killed by signal: Bus\n"
                    "error. It is possible that dataloader's workers are out of shared\n"
                    "memory. Please try to raise your shared memory limit.\n"),
            "dev_shm_too_small");
  // What follows an error may be anything.
  EXPECT_EQ(root_of("ValueError: the file of the model that you gave to this program is not complete\n"
                    "epoch 3: loss 0.1\nundefined symbol tables: 0\n"),
            "nothing");
}

// Python 3.8's own library where no loader looks, and that of another Python.
TEST(Logs, CompareAPythonLibraryWithThePythonOfTheFrames) {
  const auto missing = [](const std::string& python) {
    return root_of(
        "Traceback (most recent call last):\n  File \"/e/lib/" + python +
        "/site-packages/isaacgym/gymdeps.py\", line 3, in f\n"
        "ImportError: libpython3.8.so.1.0: cannot open shared object file: No such file or directory\n");
  };
  EXPECT_EQ(missing("python3.8"), "system_library_missing");
  EXPECT_EQ(missing("python3.10"), "python_abi_tag_mismatch");
}

// glibc's catalogues translate the words, but neither the order nor the names.
TEST(Logs, OfTheLoaderAreReadInAnyLanguage) {
  EXPECT_EQ(root_of("ImportError: /x/m.so: nicht definiertes Symbol: _ZN3c104cuda9SetDeviceEi\n"),
            "torch_version_mismatch");
  EXPECT_EQ(root_of("ImportError: /x/m.so: 未定義シンボル: _ZN3c104cuda9SetDeviceEi\n"),
            "torch_version_mismatch");
  EXPECT_EQ(root_of("/lib64/libc.so.6: Version »GLIBC_2.34« nicht gefunden (von /x/y.so benötigt)\n"),
            "glibc_too_old");
  EXPECT_EQ(root_of("libcudart.so.11.0: 공유 오브젝트 파일을 열 수 없습니다: 그런 파일이 없습니다\n"),
            "missing_cudart");
}

// The same words from an installed package and from the user's own program.
TEST(Logs, AskWhoMadeTheCallThatPythonRefuses) {
  const auto refused = [](const std::string& file) {
    return root_of("Traceback (most recent call last):\n  File \"" + file +
                   "\", line 3, in f\n    Client(proxies=None)\n"
                   "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'\n");
  };
  EXPECT_EQ(refused("/v/lib/python3.11/site-packages/gradio/app.py"), "package_releases_differ");
  EXPECT_EQ(refused("/home/me/train.py"), "");
}

TEST(Logs, KeepWarningsOfARunThatWentOn) {
  const std::string warning = "UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs\n";
  const Log fine = explain_text(warning + "epoch 1\n");
  ASSERT_EQ(fine.hits.size(), 1u);
  EXPECT_EQ(fine.hits[0].role, "warning");
  EXPECT_TRUE(explain_text(warning + "ZeroDivisionError: division by zero\n").hits.empty());
}

TEST(Logs, OfRandomBytesNeitherCrashNorGrow) {
  std::mt19937 random(7);
  const std::vector<std::string> words = {"undefined symbol: ",
                                          "_ZN",
                                          "\x1b[",
                                          "\n",
                                          "\r",
                                          "Traceback (most recent call last):\n",
                                          ": cannot open shared object file",
                                          "libcuda",
                                          ".so",
                                          "Killed",
                                          "\xff",
                                          "'",
                                          "error: "};
  for (int round = 0; round < 40; ++round) {
    std::string text;
    while (text.size() < 20'000)
      if (random() % 3 == 0)
        text += words[random() % words.size()];
      else
        text += static_cast<char>(random() & 0xff);
    const Log log = explain_text(text);
    EXPECT_LE(log.hits.size(), 200u);
    for (const LogHit& hit : log.hits)
      for (const char c : hit.text) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST(LogRules, AreWellFormed) {
  std::set<std::string> ids;
  const std::set<std::string> roles = {"fatal", "symptom", "clue", "warning", "last", "wrapper", "boundary"},
                              sure = {"certain", "likely", "possible"},
                              kinds = {"",       "symbol",   "version", "library", "module",    "wheel",
                                       "header", "xformers", "name",    "call",    "tokenizer", "hidden"};
  for (const knowledge::LogRule& rule : knowledge::log_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_TRUE(roles.contains(rule.role) && sure.contains(rule.sure) && kinds.contains(rule.classify))
        << rule.id;
    EXPECT_TRUE(rule.cause.empty() || cause_from_slug(rule.cause)) << rule.id;
    EXPECT_NE(rule.classify.empty(), rule.meaning.empty()) << rule.id;
    for (const std::string& slug : rule.alternatives) EXPECT_TRUE(cause_from_slug(slug)) << rule.id;
  }
  for (const knowledge::LogJoin& join : knowledge::log_joins()) {
    EXPECT_TRUE(join.gives == knowledge::kNoCause || cause_from_slug(join.gives)) << join.gives;
    for (const std::string& clue : join.clues) EXPECT_TRUE(ids.contains(clue)) << clue;
  }
  RuleFilter::Memo memo;
  EXPECT_TRUE(matcher().match("nothing of note", memo).rules.empty());
}

}  // namespace
}  // namespace scankit::logs
