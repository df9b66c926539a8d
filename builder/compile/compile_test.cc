// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"

namespace scankit::compile {
namespace {

constexpr const char* kSource =
    "extern \"C\" __global__ void scale(float* p, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) p[i] = p[i] * SCALE;\n"
    "}\n";

// Compiles for real, with whatever NVRTC this machine has.
class Compile : public testing::Test {
 protected:
  void SetUp() override {
    auto host = make_real_host();
    const auto found = toolchain::find_nvrtc(*host, Snapshot{});
    if (found.empty()) GTEST_SKIP() << "no NVRTC on this machine";
    static toolchain::Nvrtc nvrtc;  // hashed once: it has 90 MB
    if (nvrtc.sha256.empty()) {
      nvrtc = found[0];
      const auto known = toolchain::identify(*host, cache, nvrtc);
      ASSERT_TRUE(known) << english(known.error().message);
    }
    compiler = std::make_unique<toolchain::NvrtcCompiler>(nvrtc);
    request.compiler = compiler.get();
    request.source = kSource;
    request.units = {{"twice", {"-DSCALE=2.f"}}, {"thrice", {"-DSCALE=3.f"}}};
    request.targets = {{false, 90, ""}, {true, 75, ""}};
    request.cache = &cache;
    request.jobs = 2;
    request.progress = [this](const std::string& line) { lines.push_back(line); };
  }

  TemporaryDirectory folder = TemporaryDirectory::create("compile").value();
  Cache cache{folder.path()};
  std::unique_ptr<toolchain::NvrtcCompiler> compiler;
  CompileRequest request;
  std::vector<std::string> lines;
};

TEST_F(Compile, MakesEveryUnitForEveryTarget) {
  const auto made = compile_units(request);
  ASSERT_TRUE(made) << english(made.error().message);
  ASSERT_EQ(made->size(), 4u);
  EXPECT_EQ((*made)[0].unit, "twice");
  EXPECT_TRUE((*made)[0].bytes.starts_with("\177ELF"));
  EXPECT_EQ((*made)[3].target.name(), "compute_75");
  EXPECT_NE((*made)[3].bytes.find(".target sm_75"), std::string::npos);
  EXPECT_EQ((*made)[3].bytes.back(), '\0');
  EXPECT_NE((*made)[0].sha256, (*made)[1].sha256);
}

TEST_F(Compile, TakesTheSecondTimeFromTheCacheWithTheSameBytes) {
  const auto first = compile_units(request);
  const auto second = compile_units(request);
  ASSERT_TRUE(first && second);
  for (std::size_t i = 0; i < first->size(); ++i) {
    EXPECT_TRUE((*second)[i].from_cache);
    EXPECT_EQ((*first)[i].bytes, (*second)[i].bytes);
  }
}

TEST_F(Compile, SaysWhichInputMadeAMiss) {
  ASSERT_TRUE(compile_units(request));
  EXPECT_EQ(lines.at(0), "compiled: twice and 1 more for sm_90: never built with this cache");
  const auto after = [&] {
    lines.clear();
    EXPECT_TRUE(compile_units(request));
    return lines.at(0);
  };
  request.units[0].flags.push_back("-DNEW");
  EXPECT_EQ(after(), "compiled again: twice for sm_90: since the last build flag -DNEW was added");
  request.targets[0].sm = 80;
  EXPECT_EQ(after(), "compiled: twice and 1 more for sm_80: never built with this cache");
  request.targets.pop_back();
  const std::string source = std::string("// kernels/a/scale.cuh\n") + kSource;
  request.source = source;
  after();
  const std::string changed = source + "// another comment\n";
  request.source = changed;
  EXPECT_EQ(after(),
            "compiled again: twice and 1 more for sm_80: since the last build kernels/a/scale.cuh changed");
  std::filesystem::remove_all(folder.path() + "/objects");
  EXPECT_EQ(after(),
            "compiled again: twice and 1 more for sm_80: nothing changed, but it is no longer in the cache");
}

// Of another version, or the same one with other bytes.
class OtherCompiler final : public toolchain::DeviceCompiler {
 public:
  OtherCompiler(const toolchain::DeviceCompiler& real, std::string version)
      : real_(real), version_(std::move(version)) {}
  std::string kind() const override { return real_.kind(); }
  std::string version() const override { return version_; }
  std::string sha256() const override { return std::string(64, 'a'); }
  std::string said() const override { return real_.said(); }
  const std::vector<std::string>& common_flags() const override { return real_.common_flags(); }
  void add_inputs(Key& key) const override { real_.add_inputs(key); }
  Result<ProcessResult> compile(const Job& job) const override { return real_.compile(job); }

 private:
  const toolchain::DeviceCompiler& real_;
  std::string version_;
};

TEST_F(Compile, CompilesAgainWithAnotherCompiler) {
  request.targets.resize(1);
  request.units.resize(1);
  ASSERT_TRUE(compile_units(request));
  lines.clear();
  const OtherCompiler other(*compiler, compiler->version());
  request.compiler = &other;
  ASSERT_TRUE(compile_units(request));
  EXPECT_EQ(lines.at(0),
            "compiled again: twice for sm_90: since the last build the content of compiler nvrtc " +
                compiler->version() + " changed");
  lines.clear();
  const OtherCompiler newer(*compiler, "99.1");
  request.compiler = &newer;
  ASSERT_TRUE(compile_units(request));
  EXPECT_EQ(lines.at(0),
            "compiled again: twice for sm_90: since the last build compiler is nvrtc 99.1 and was nvrtc " +
                compiler->version());
}

TEST_F(Compile, ReportsTheUsefulLinesOfAFailure) {
  request.units = {{"broken", {}}};
  request.targets.resize(1);  // of several at once, the first to fail is the one that is reported
  const auto made = compile_units(request);
  ASSERT_FALSE(made);
  EXPECT_NE(english(made.error().message).find("compiling broken for sm_90 failed: source.cu(3): error"),
            std::string::npos)
      << english(made.error().message);
  EXPECT_NE(english(made.error().hint).find("SCALE"), std::string::npos);
  EXPECT_FALSE(cache.find(KeyMaker(request).key(request.units[0], request.targets[0])));
}

TEST_F(Compile, WorksWithoutAWritableCache) {
  const Cache nowhere("/proc/nowhere");
  request.cache = &nowhere;
  EXPECT_TRUE(compile_units(request));
}

TEST(FindNvrtc, ReadsEveryNameItMayHave) {
  auto root = TemporaryDirectory::create("nvrtc");
  for (const char* file :
       {"/usr/local/cuda-12/lib64/libnvrtc.so.12", "/usr/local/cuda-12/lib64/libnvrtc-builtins.so.12.9",
        "/usr/local/cuda-12/lib64/libnvrtc.alt.so.12", "/usr/local/cuda-12/lib64/libnvrtc.so"}) {
    ASSERT_TRUE(make_directories(path_dirname(root->path() + file)));
    ASSERT_TRUE(write_file_atomically(root->path() + file, "x"));
  }
  const auto found = toolchain::find_nvrtc(*make_real_host(root->path()), Snapshot{});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "/usr/local/cuda-12/lib64/libnvrtc.so.12");
  EXPECT_EQ(found[0].builtins, "/usr/local/cuda-12/lib64/libnvrtc-builtins.so.12.9");
}

}  // namespace
}  // namespace scankit::compile
