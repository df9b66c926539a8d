// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "builder/compile/compile.h"
#include "builder/module/bundled.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/elf/fatbin.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::toolchain {
namespace {

// A toolkit of scripts and empty files, which answers as nvcc does.
class FindNvcc : public probes::PythonTree {
 protected:
  FindNvcc() : cache(at("cache")) { host_.variables["PATH"] = at("path"); }
  void toolkit(const std::string& root, const std::string& version = "13.0.88",
               const std::string& runtime = "13000") {
    write(root + "/bin/nvcc",
          "#!/bin/sh\ncase $1 in\n--version) echo 'Cuda compilation tools, release 13.0, V" + version +
              "' ;;\n--list-gpu-code) printf 'sm_75\\nsm_90\\n' ;;\n*) exit 1 ;;\nesac\n",
          0755);
    for (const char* file : {"/bin/cudafe++", "/bin/ptxas", "/nvvm/bin/cicc"}) write(root + file, "", 0755);
    write(root + "/nvvm/libdevice/libdevice.10.bc", "");
    write(root + "/include/cuda_runtime.h", "");
    write(root + "/include/cuda_runtime_api.h", "#define CUDART_VERSION " + runtime + "\n");
    write(root + "/include/crt/host_config.h",
          "#if __GNUC__ > 15\n#if (__clang_major__ >= 21) || (__clang_major__ < 7)\n");
  }
  void gcc(const std::string& name, const std::string& version) {
    write("path/" + name, "#!/bin/sh\necho " + version + "\n", 0755);
  }
  Result<Nvcc> known(const std::string& root) {
    Nvcc nvcc = nvcc_at(host_, at(root), "a test's");
    auto done = identify_nvcc(host_, cache, nvcc);
    if (!done) return done.error();
    return nvcc;
  }
  static std::string told(const Error& error) { return english(error.message) + "; " + english(error.hint); }
  compile::Cache cache;
};

TEST_F(FindNvcc, KnowsWhatItIsAndWhatItTakes) {
  toolkit("cuda");
  gcc("g++", "12.2.0");
  const auto nvcc = known("cuda");
  ASSERT_TRUE(nvcc) << english(nvcc.error().message);
  EXPECT_EQ(nvcc->version, "13.0.88");
  EXPECT_EQ(nvcc->release, "13.0");
  EXPECT_EQ(nvcc->archs, (std::vector<unsigned>{75, 90}));
  EXPECT_EQ(nvcc->host.path, at("path/g++"));
  EXPECT_EQ(shown(nvcc->takes), "gcc up to 15, clang 7 to 20");
  write("cuda/nvvm/bin/cicc", "another", 0755);
  const auto other = known("cuda");
  ASSERT_TRUE(other);
  EXPECT_NE(other->sha256, nvcc->sha256);  // what it starts decides over the bytes
}

TEST_F(FindNvcc, ReadsTheArchitecturesFromTheHelpOfAnOldOne) {
  toolkit("cuda", "11.0.221", "11000");
  gcc("g++", "9.3.0");
  write(
      "cuda/bin/nvcc",
      "#!/bin/sh\ncase $1 in\n--version) echo 'Cuda compilation tools, release 11.0, V11.0.221' ;;\n--help) "
      "echo \"Allowed values: 'compute_80','sm_75','sm_80','sm_75'.\" ;;\n*) exit 1 ;;\nesac\n",
      0755);
  const auto nvcc = known("cuda");
  ASSERT_TRUE(nvcc) << english(nvcc.error().message);
  EXPECT_EQ(nvcc->archs, (std::vector<unsigned>{75, 80}));
}

TEST_F(FindNvcc, TakesTheCompilerThatIsInRange) {
  toolkit("cuda");
  gcc("g++", "16.1.0");
  auto nvcc = known("cuda");
  ASSERT_FALSE(nvcc);
  EXPECT_NE(told(nvcc.error()).find("supports gcc up to 15, clang 7 to 20, but found gcc 16.1.0"),
            std::string::npos)
      << told(nvcc.error());
  EXPECT_NE(told(nvcc.error()).find("g++-15"), std::string::npos);
  gcc("g++-14", "14.2.0");
  gcc("g++-13", "13.1.0");
  nvcc = known("cuda");
  ASSERT_TRUE(nvcc);
  EXPECT_EQ(nvcc->host.path, at("path/g++-14"));
  host_.variables["CUDAHOSTCXX"] = at("path/g++-13");
  EXPECT_EQ(known("cuda")->host.path, at("path/g++-13"));
}

TEST_F(FindNvcc, SaysWhatIsMissingBeforeAnythingIsBuilt) {
  toolkit("cuda");
  EXPECT_NE(told(known("cuda").error()).find("PATH contains none"), std::string::npos);
  gcc("g++", "12.2.0");
  for (const char* file : {"cuda/include/crt/host_config.h", "cuda/include/cuda_runtime.h",
                           "cuda/nvvm/bin/cicc", "cuda/bin/ptxas"}) {
    if (host_.exists("/usr/include/cuda_runtime.h")) GTEST_SKIP() << "a toolkit in /usr/include";
    toolkit("cuda");
    ASSERT_EQ(::unlink(at(file).c_str()), 0);
    const auto nvcc = known("cuda");
    ASSERT_FALSE(nvcc) << file;
    EXPECT_NE(told(nvcc.error()).find(at(file) + " is missing"), std::string::npos) << told(nvcc.error());
    EXPECT_NE(told(nvcc.error()).find("pip install nvidia-cuda-nvcc"), std::string::npos);
  }
}

TEST_F(FindNvcc, RefusesHeadersOfAnotherRelease) {
  toolkit("cuda", "13.0.88", "13050");
  gcc("g++", "12.2.0");
  EXPECT_NE(told(known("cuda").error()).find("is from CUDA 13.0, but its headers"), std::string::npos);
  toolkit("old", "10.2.89", "10020");
  EXPECT_NE(told(known("old").error()).find("11.0 or newer"), std::string::npos);
}

TEST_F(FindNvcc, LooksThroughAScript) {
  toolkit("cuda");
  write("path/nvcc", "#!/bin/sh\nexec " + at("cuda/bin/nvcc") + " \"$@\"\n", 0755);
  EXPECT_EQ(nvcc_at(host_, at("path/nvcc"), "").root, at("cuda"));
}

TEST_F(FindNvcc, FindsThatOfTheWheelsAndOfTheMajor) {
  toolkit("site/nvidia/cu13");
  gcc("g++", "12.2.0");
  Snapshot snapshot;
  snapshot.python.value.sys_path = {{.path = at("site"), .origin = "site", .exists = true}};
  const auto found = find_nvcc(host_, snapshot);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].root, at("site/nvidia/cu13"));
  EXPECT_TRUE(nvcc_of_major(host_, snapshot, cache, "13"));
  const auto none = nvcc_of_major(host_, snapshot, cache, "12");
  ASSERT_FALSE(none);
  EXPECT_NE(told(none.error()).find("no usable nvcc of CUDA 12 found:"), std::string::npos);
  EXPECT_NE(told(none.error()).find("is from CUDA 13.0"), std::string::npos);
  EXPECT_NE(told(nvcc_of_major(host_, {}, cache, "13").error()).find("pip install nvidia-cuda-nvcc"),
            std::string::npos);
}

TEST(FindNvrtcOf, TorchsCudaComesFirst) {
  auto root = TemporaryDirectory::create("nvrtc").value();
  for (const char* file :
       {"/site/nvidia/cu13/lib/libnvrtc.so.13", "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}) {
    ASSERT_TRUE(make_directories(path_dirname(root.path() + file)));
    ASSERT_TRUE(write_file_atomically(root.path() + file, "x"));
  }
  Snapshot snapshot;
  snapshot.python.value.sys_path = {{.path = "/site", .origin = "site", .exists = true}};
  const auto host = make_real_host(root.path());
  EXPECT_EQ(find_nvrtc(*host, snapshot).at(0).path, "/site/nvidia/cu13/lib/libnvrtc.so.13");
  snapshot.torch.value.cuda = "12.8";
  EXPECT_EQ(find_nvrtc(*host, snapshot).at(0).path, "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  EXPECT_EQ(find_nvrtc(*host, snapshot).at(0).origin, "wheel nvidia-cuda-nvrtc-cu12 in /site");
  // That of CUDA 11 is in the same folder.
  ASSERT_TRUE(write_file_atomically(root.path() + "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2", "x"));
  EXPECT_TRUE(std::ranges::any_of(find_nvrtc(*host, snapshot), [](const Nvrtc& found) {
    return found.path.ends_with("libnvrtc.so.11.2") &&
           found.origin == "wheel nvidia-cuda-nvrtc-cu11 in /site";
  }));
}

TEST(HostCompilers, OfAReleaseAreKnownWithoutItsHeaders) {
  const auto host = make_real_host("/nowhere");
  EXPECT_EQ(shown(host_compiler_range(*host, {}, "12.4")), "gcc up to 13, clang 3 to 17");
  EXPECT_EQ(host_compiler_range(*host, {}, "99.0").gcc_max, 0u);
}

TEST(CubinAbis, AreThoseOfTheRelease) {
  EXPECT_EQ(cubin_abi_of("12.9", 90), 7u);
  EXPECT_EQ(cubin_abi_of("12.9", 100), 8u);
  EXPECT_EQ(cubin_abi_of("13.0.88", 75), 8u);
  EXPECT_TRUE(ptx_fits("8.1", "12.1"));
  EXPECT_FALSE(ptx_fits("8.8", "12.1"));
  EXPECT_FALSE(ptx_fits("99.0", "12.1"));
}

TEST(DriverFit, IsWhatTheDriverReads) {
  const auto driver = [](const char* version) { return Probed<Driver>::of({.version = version}); };
  const auto why = [&](const char* version, const char* release, const char* target) {
    return driver_fit(driver(version), release, module::parse_targets(target)->list);
  };
  EXPECT_EQ(why("580.95.05", "13.0", "sm_90").why, "");
  EXPECT_EQ(why("550.54.15", "12.9", "sm_90").why, "");
  EXPECT_TRUE(why("550.54.15", "13.0.88", "sm_90").refused);
  EXPECT_FALSE(why("575.51.03", "13.0", "sm_90").refused);  // between what is promised and what cannot be
  EXPECT_NE(why("575.51.03", "13.0", "sm_90").why, "");
  EXPECT_TRUE(why("535.54.03", "12.9", "compute_75").refused);
  EXPECT_EQ(why("535.54.03", "12.1", "compute_75").why, "");
  EXPECT_EQ(driver_fit(Probed<Driver>::absent("none"), "13.0", module::parse_targets("sm_90")->list).why, "");
}

TEST(Release, HoldsEveryArchitectureOnceFromTheCompilerThatSuitsIt) {
  std::set<unsigned> known, given;
  for (const WheelToolchain& toolchain : wheel_toolchains())
    for (const unsigned sm : toolchain.archs)
      if (sm >= 60 && sm != 101) known.insert(sm);  // 101 is what CUDA 13 calls 110
  for (const module::ReleasePart& part : module::release_parts())
    for (const module::Target& target : part.targets) {
      const bool fresh = target.ptx || given.insert(target.sm).second;
      EXPECT_TRUE(fresh) << target.name() << " twice";
      const std::string expected = target.ptx         ? "nvrtc-12.1.105"
                                   : target.sm == 88  ? "nvrtc-13.0.88"
                                   : target.sm <= 90  ? "nvrtc-12.9.86"
                                   : target.sm == 107 ? "nvrtc-13.5.37"
                                                      : "nvrtc-13.0.88";
      EXPECT_EQ(part.toolchain, expected) << target.name();
    }
  EXPECT_EQ(given, known);
  EXPECT_EQ(module::release_parts().back().targets.at(0).name(), "compute_80");
}

// With what this machine has.
class ChooseToolchain : public testing::Test {
 protected:
  TemporaryDirectory folder = TemporaryDirectory::create("choose").value();
  compile::Cache cache{folder.path()};
  std::unique_ptr<Host> host = make_real_host();
  module::TargetRequest list(const std::string& text) { return module::parse_targets(text).value(); }
};

TEST_F(ChooseToolchain, FetchesNothingUnasked) {
  const auto empty = make_real_host(folder.path());
  const auto none = choose_toolchain(*empty, {}, list("sm_70"), cache);
  ASSERT_FALSE(none);
  EXPECT_NE(english(none.error().hint).find("pip install nvidia-cuda-nvrtc-cu12"), std::string::npos);
  EXPECT_NE(english(none.error().hint).find("--allow-download"), std::string::npos);
  const auto no_way = choose_toolchain(*empty, {}, list("sm_70"), cache, {.may_download = true});
  ASSERT_FALSE(no_way);
  EXPECT_NE(english(no_way.error().message).find("neither uv nor a Python with pip"), std::string::npos);
  ToolchainRequest wish{.may_download = true};
  wish.fetch = [](const std::vector<WheelPin>&, const std::string&) { return Result<void>(); };
  const auto agreed = choose_toolchain(*empty, {}, list("sm_70"), cache, wish);
  ASSERT_TRUE(agreed);
  ASSERT_EQ(agreed->missing().size(), 1u);
  EXPECT_EQ(agreed->missing()[0]->id, "nvrtc-12.9.86");
  const auto newest = choose_toolchain(*empty, {}, list("sm_107"), cache, wish);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->missing().at(0)->id, "nvrtc-13.5.37");
  const auto both = choose_toolchain(*empty, {}, list("sm_107,sm_70"), cache, wish);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->missing().size(), 2u);
  EXPECT_EQ(both->choice.targets.at(0).name(), "sm_70");
  EXPECT_EQ(both->compilers.at(both->made_by.at(0)).wheel->id, "nvrtc-12.9.86");
  EXPECT_FALSE(choose_toolchain(*empty, {}, list("sm_20"), cache, wish));
}

TEST_F(ChooseToolchain, WithoutDeviceCodeItNeedsNone) {
  const auto nothing = choose_toolchain(*make_real_host(folder.path()), {}, list("none"), cache);
  ASSERT_TRUE(nothing) << english(nothing.error().message);
  EXPECT_TRUE(nothing->compilers.empty() && nothing->missing().empty() && nothing->said().empty());
}

TEST_F(ChooseToolchain, WithoutInstallerItSaysSoAndLeavesNothing) {
  const auto& wheel = wheel_toolchain("nvrtc-12.9.86");
  FetchRequest request{
      &wheel, {.why = "neither uv nor pip is installed", .instead = "put uv on PATH"}, {}, {}};
  const auto none = fetch_wheels(*host, cache, request);
  ASSERT_FALSE(none);
  EXPECT_NE(english(none.error().message).find("neither uv nor pip"), std::string::npos);
  // What the other way brings is held to the same: a tree that is not the wheel's is not taken.
  request.otherwise = [](const std::vector<WheelPin>&, const std::string& into) -> Result<void> {
    const std::string info = into + "/nvidia_cuda_nvrtc_cu12-12.9.86.dist-info";
    SCANKIT_CHECK(make_directories(info));
    SCANKIT_CHECK(make_directories(into + "/nvidia/cuda_nvrtc/lib"));
    SCANKIT_CHECK(write_file_atomically(into + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "x"));
    return write_file_atomically(
        info + "/RECORD",
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12,sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,1\n");
  };
  const auto wrong = fetch_wheels(*host, cache, request);
  ASSERT_FALSE(wrong);
  EXPECT_NE(english(wrong.error().message).find("RECORD"), std::string::npos)
      << english(wrong.error().message);
  EXPECT_TRUE(make_real_host()->list(folder.path() + "/toolchains")->empty());
  EXPECT_EQ(fetched_folder(*host, cache, wheel), "");
}

// A folder of the right names, whose RECORD fits its files: both were written by whoever planted them.
TEST_F(ChooseToolchain, AFetchedCompilerIsTheOneThatIsPinned) {
  const auto& wheel = wheel_toolchain("nvrtc-12.9.86");
  const std::string planted = cache.folder() + "/toolchains/nvrtc-12.9.86";
  const std::string info = planted + "/nvidia_cuda_nvrtc_cu12-12.9.86.dist-info";
  ASSERT_TRUE(make_directories(info) && make_directories(planted + wheel.folder));
  ASSERT_TRUE(write_file_atomically(planted + wheel.folder + "/libnvrtc.so.12", "x"));
  ASSERT_TRUE(write_file_atomically(
      info + "/RECORD",
      "nvidia/cuda_nvrtc/lib/libnvrtc.so.12,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1\n"));
  EXPECT_EQ(fetched_folder(*host, cache, wheel), "");
  for (const WheelToolchain& each : wheel_toolchains())
    for (const WheelPin& pin : each.wheels) EXPECT_EQ(pin.files.size(), 64u) << pin.name;
}

TEST(WheelToolchains, AreForTheProcessorOfThisScankit) {
  EXPECT_FALSE(wheel_toolchain("nvrtc-12.9.86").wheels.empty());
  EXPECT_FALSE(wheel_toolchain("nvrtc-13.0.88").wheels.empty());
  EXPECT_EQ(wheel_toolchain("nvcc-13.0.88").wheels.size(), 5u);
  const auto folders = toolkit_library_folders();
  EXPECT_EQ(folders.size(), 2 + kToolkitTargets.size());
  EXPECT_EQ(folders.back(), std::string("/targets/") + kToolkitTargets.back() + "/lib");
}

TEST_F(ChooseToolchain, TakesWhatIsNamed) {
  for (const char* bad : {"gcc", "nvrtc13", "wheel"})
    EXPECT_FALSE(choose_toolchain(*host, {}, {}, cache, {.asked = bad})) << bad;
  const auto none = choose_toolchain(*host, {}, {}, cache, {.asked = folder.path()});
  ASSERT_FALSE(none);
  EXPECT_NE(english(none.error().message).find("neither nvcc nor NVRTC"), std::string::npos);
}

// A driver of CUDA 12 beside a toolkit of CUDA 13: what it cannot read is not built.
TEST_F(ChooseToolchain, TakesWhatTheDriverReads) {
  const auto empty = make_real_host(folder.path());
  Snapshot snapshot;
  snapshot.gpus = Probed<std::vector<Gpu>>::of({{.name = "H100", .sm = "90"}});
  snapshot.driver = Probed<Driver>::of({.version = "550.54.15"});
  ToolchainRequest wish{.may_download = true};
  wish.fetch = [](const std::vector<WheelPin>&, const std::string&) { return Result<void>(); };
  const auto old = choose_toolchain(*empty, snapshot, {}, cache, wish);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->missing().at(0)->id, "nvrtc-12.9.86");
  snapshot.gpus.value[0].sm = "107";
  const auto none = choose_toolchain(*empty, snapshot, {}, cache, wish);
  EXPECT_TRUE(!none || none->choice.targets.at(0).ptx);
}

// The same source by nvcc: every unit's image is what NVRTC's is to the readers.
TEST_F(ChooseToolchain, NvccMakesWhatNvrtcMakes) {
  Snapshot snapshot;
  snapshot.toolkits = probes::probe_toolkits(*host);
  const auto toolchain =
      choose_toolchain(*host, snapshot, list("sm_90,compute_75"), cache, {.asked = "nvcc"});
  if (!toolchain) GTEST_SKIP() << english(toolchain.error().message);
  const auto compiler = make_compiler(toolchain->compilers[0]);
  compile::CompileRequest request;
  request.source = "extern \"C\" __global__ void scale(float* p) { p[threadIdx.x] *= SCALE; }\n";
  request.units = {{"twice", {"-DSCALE=2.f"}}};
  request.targets = toolchain->choice.targets;
  request.compiler = compiler.get();
  request.cache = &cache;
  const auto made = compile::compile_units(request);
  ASSERT_TRUE(made) << english(made.error().message);
  const auto cubin = elf::cubin_facts((*made)[0].bytes);
  ASSERT_TRUE(cubin);
  EXPECT_EQ(cubin->sm, 90u);
  EXPECT_EQ(cubin->abi_version, cubin_abi_of((*made)[0].compiler, 90));
  EXPECT_EQ((*made)[1].bytes.back(), '\0');
  EXPECT_EQ(elf::ptx_facts((*made)[1].bytes)->sm, 75u);
  const auto again = compile::compile_units(request);
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)[0].from_cache);
  EXPECT_NE(
      compile::KeyMaker(request).key(request.units[0], request.targets[0]).text().find("host compiler: "),
      std::string::npos);
  request.units = {{"broken", {}}};
  const auto failed = compile::compile_units(request);
  ASSERT_FALSE(failed);
  EXPECT_NE(english(failed.error().message).find("source.cu(1): error"), std::string::npos)
      << english(failed.error().message);
}

}  // namespace
}  // namespace scankit::toolchain
