// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "builder/compile/build.h"
#include "builder/module/assemble.h"
#include "doctor/base/files.h"

namespace scankit::module {
namespace {

const BundledModule& scan() { return **bundled_module("selective_scan_cuda"); }

// Real heads, as what writes a module asks for; nothing here runs them.
std::string head_of(const Target& target) {
  if (target.ptx) return "//\n\n.version 8.1\n.target sm_" + std::to_string(target.sm) + "\n";
  std::string cubin("\177ELF\2\1\1\x41\x08", 9);
  cubin.resize(64, '\0');
  cubin[18] = static_cast<char>(190);  // EM_CUDA
  cubin[49] = static_cast<char>(target.sm);
  return cubin;
}

// What lies beside scankit, in a scratch folder: every unit for these targets, with bytes that nothing runs.
class Beside : public ::testing::Test {
 protected:
  Beside() : folder_(TemporaryDirectory::create("prebuilt").value()) {}

  void place(const std::vector<Target>& targets,
             const std::function<void(nlohmann::ordered_json&)>& change = {}) {
    std::vector<compile::BuiltCode> images;
    nlohmann::ordered_json manifest = {
        {"schema", 1},
        {"module", "selective_scan_cuda"},
        {"inputs",
         {{"host_module_sha256", "other"}, {"device_source_sha256", sha256_hex(scan().device_source)}}},
        {"toolchain", {{"kind", "nvrtc"}, {"version", "12.9"}}},
        {"images", nlohmann::ordered_json::array()}};
    for (const Target& target : targets)
      for (const toolchain::Unit& unit : scan().units) {
        compile::BuiltCode image{unit.name, target, head_of(target) + unit.name + target.name(), "", false};
        if (target.ptx) image.bytes += '\0';
        image.sha256 = sha256_hex(image.bytes);
        manifest["images"].push_back(
            {{"unit", unit.name}, {"target", target.name()}, {"sha256", image.sha256}});
        images.push_back(std::move(image));
      }
    if (change) change(manifest);
    auto module = assemble_module(scan().host_module, images, manifest.dump(2) + "\n");
    ASSERT_TRUE(module) << english(module.error().message);
    bytes_ = *module;
    write(bytes_);
  }
  void write(const std::string& bytes) const {
    ASSERT_TRUE(write_file_atomically(path_join(folder_.path(), "selective_scan_cuda.abi3.so"), bytes));
  }
  Result<std::optional<compile::BuiltModule>> ask(const std::string& arch,
                                                  const std::vector<std::string>& gpus = {},
                                                  const std::string& module = "selective_scan_cuda") const {
    std::vector<Gpu> here;
    for (const std::string& sm : gpus) {
      Gpu gpu;
      gpu.sm = sm;
      here.push_back(gpu);
    }
    return prebuilt_module(
        folder_.path(), **bundled_module(module), arch.empty() ? TargetRequest{} : *parse_targets(arch),
        gpus.empty() ? Probed<std::vector<Gpu>>::absent("none") : Probed<std::vector<Gpu>>::of(here));
  }
  bool serves(const std::string& arch, const std::vector<std::string>& gpus = {}) const {
    const auto found = ask(arch, gpus);
    EXPECT_TRUE(found) << english(found.error().message);
    return found && found->has_value();
  }

  TemporaryDirectory folder_;
  std::string bytes_;
};

const std::vector<Target> kTargets = {{false, 75, ""}, {false, 80, ""}, {false, 90, ""}, {true, 75, ""}};

TEST_F(Beside, NothingThereIsNoError) { EXPECT_FALSE(serves("")); }

TEST_F(Beside, AHostModuleAloneServesNobody) {
  write(std::string(scan().host_module));
  EXPECT_FALSE(serves(""));
}

TEST_F(Beside, ServesTheGpusThatItHasCodeFor) {
  place(kTargets);
  EXPECT_TRUE(serves(""));
  EXPECT_TRUE(serves("", {"90"}));
  EXPECT_TRUE(serves("native", {"80", "90"}));
  EXPECT_TRUE(serves("", {"86"}));   // sm_80 of the same major version
  EXPECT_TRUE(serves("", {"130"}));  // newer than all: PTX
  EXPECT_TRUE(serves("sm_90,compute_75"));
  EXPECT_FALSE(serves("", {"90", "70"}));
  EXPECT_FALSE(serves("sm_86"));
  EXPECT_FALSE(serves("native"));
}

// What is finished is installed where nothing would be compiled, but not where the user wants it without device code.
TEST_F(Beside, ServesATorchWithoutCuda) {
  place(kTargets);
  EXPECT_FALSE(serves("none"));
  TargetRequest decided = *parse_targets("none");
  decided.none_since = "torch has no CUDA";
  const auto found =
      prebuilt_module(folder_.path(), scan(), decided, Probed<std::vector<Gpu>>::absent("none"));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((**found).targets, kTargets);
}

TEST_F(Beside, WithoutPtxANewerGpuIsNotServed) {
  place({{false, 75, ""}, {false, 90, ""}});
  EXPECT_FALSE(serves("", {"130"}));
}

TEST_F(Beside, GivesTheModuleWithOurHostPartAndEveryImage) {
  place(kTargets);
  const auto found = ask("", {"90"});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((**found).targets, kTargets);
  EXPECT_EQ((**found).images.size(), kTargets.size() * scan().units.size());
  EXPECT_EQ((**found).module, "selective_scan_cuda");
  EXPECT_EQ((**found).file, "selective_scan_cuda.abi3.so");
  EXPECT_EQ((**found).compiler, "bundled, built by nvrtc 12.9");
  EXPECT_TRUE((**found).bytes.starts_with(std::string(scan().host_module.substr(0, 16))));
  const auto manifest = nlohmann::json::parse((**found).manifest);
  EXPECT_EQ(manifest["inputs"]["host_module_sha256"], sha256_hex(scan().host_module));
  EXPECT_EQ(*section_bytes((**found).bytes, ".scankit.manifest"), (**found).manifest);
}

TEST_F(Beside, ServesTheOtherModulesOfTheKernel) {
  place(kTargets);
  const auto found = ask("", {"90"}, "selective_scan_cuda_oflex");
  ASSERT_TRUE(found && *found);
  EXPECT_NE((**found).bytes.find("PyInit_selective_scan_cuda_oflex"), std::string::npos);
  EXPECT_NE((**found).manifest.find("\"module\": \"selective_scan_cuda_oflex\""), std::string::npos);
  EXPECT_FALSE(*ask("", {"90"}, "causal_conv1d_cuda"));
}

TEST_F(Beside, OtherSourcesThanOursAreLeftAlone) {
  place(kTargets, [](auto& manifest) { manifest["inputs"]["device_source_sha256"] = std::string(64, '0'); });
  EXPECT_FALSE(serves(""));
}

TEST_F(Beside, ChangedBytesAndCutFilesAreErrors) {
  place(kTargets);
  std::string changed = bytes_;
  changed[changed.find(scan().units[0].name + "sm_90", scan().host_module.size())] ^= 1;
  write(changed);
  const auto found = ask("");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::Malformed);
  EXPECT_NE(english(found.error().message).find("sm_90 differs"), std::string::npos)
      << english(found.error().message);
  EXPECT_NE(english(found.error().hint).find("reinstall scankit"), std::string::npos);
  for (const std::size_t length : {bytes_.size() - 1, bytes_.size() / 2, std::size_t{100}, std::size_t{0}}) {
    write(bytes_.substr(0, length));
    EXPECT_FALSE(ask("")) << length;
  }
}

TEST_F(Beside, ManifestsThatLieAreErrors) {
  place(kTargets, [](auto& manifest) { manifest["images"].erase(0); });
  EXPECT_FALSE(ask(""));
  place(kTargets, [](auto& manifest) { manifest["images"][3]["target"] = 90; });
  EXPECT_FALSE(ask(""));
  place(kTargets, [](auto& manifest) { manifest["images"][3] = "image"; });
  EXPECT_FALSE(ask(""));
  place(kTargets, [](auto& manifest) { manifest["images"] = nullptr; });
  EXPECT_FALSE(ask(""));
  place(kTargets, [](auto& manifest) { manifest = "manifest"; });
  EXPECT_FALSE(ask(""));
}

// A module without one unit would fail at its first call.
TEST_F(Beside, AUnitThatLacksATargetIsNoRelease) {
  place(kTargets, [](auto& manifest) { manifest["images"][0]["unit"] = "another"; });
  EXPECT_FALSE(serves(""));
}

}  // namespace
}  // namespace scankit::module
