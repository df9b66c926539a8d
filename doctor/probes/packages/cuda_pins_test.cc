// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/library_test.h"
#include "doctor/probes/extensions/extension_resolve.h"

namespace scankit::probes {
namespace {

class CudaPins : public testing::Test {
 protected:
  void install(const std::string& name, const std::string& version, const std::string& requirements) {
    const std::string folder = name + "-" + version + ".dist-info";
    shop_.write(folder + "/METADATA", "Metadata-Version: 2.4\nName: " + name + "\n" + requirements +
                                          "\nRequires-Dist: nvidia-of-the-description==1\n");
    Distribution distribution;
    distribution.name = name;
    distribution.version = version;
    distribution.path = shop_.path(folder);
    snapshot_.distributions.value.push_back(std::move(distribution));
  }
  std::vector<std::string> pins() {
    std::vector<std::string> words;
    for (const CudaPin& pin : cuda_pins(*make_real_host(), snapshot_))
      words.push_back(pin.requirement + (pin.met ? " met by " : " not met by ") +
                      (pin.installed.empty() ? "nothing" : pin.installed));
    return words;
  }
  test::Workshop shop_;
  Snapshot snapshot_;
};

TEST_F(CudaPins, OfTorchItself) {
  install("torch", "2.11.0",
          "Requires-Dist: filelock\n"
          "Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == \"Linux\"\n"
          "Requires-Dist: nvidia_cudnn_cu13 (==9.19.0.56) ; platform_system == \"Linux\"\n");
  install("nvidia-nccl-cu13", "2.27.7", "");
  EXPECT_EQ(pins(), (std::vector<std::string>{"nvidia-nccl-cu13==2.28.9 not met by 2.27.7",
                                              "nvidia-cudnn-cu13==9.19.0.56 not met by nothing"}));
}

TEST_F(CudaPins, OfTheToolkitPackageThatTorchNames) {
  install("torch", "2.15.0",
          "Requires-Dist: cuda-toolkit[cublas,nvjitlink]==13.2.2; platform_system == \"Linux\"\n");
  install("cuda-toolkit", "13.2.2",
          "Requires-Dist: nvidia-cublas==13.4.1.3.*; (sys_platform == 'linux') and extra == 'cublas'\n"
          "Requires-Dist: nvidia-cufft==12.2.0.57.*; extra == 'cufft'\n"
          "Requires-Dist: nvidia-nvjitlink<14,>=13.2.86; extra == 'nvjitlink'\n");
  install("nvidia_cublas", "13.4.1.3", "");
  install("nvidia-nvjitlink", "13.0.39", "");
  EXPECT_EQ(pins(), (std::vector<std::string>{"nvidia-cublas==13.4.1.3.* met by 13.4.1.3",
                                              "nvidia-nvjitlink<14,>=13.2.86 not met by 13.0.39"}));
}

TEST_F(CudaPins, WithoutTorchOrItsMetadataThereAreNone) {
  EXPECT_TRUE(pins().empty());
  install("torch", "2.11.0", "");
  EXPECT_TRUE(pins().empty());
}

}  // namespace
}  // namespace scankit::probes
