// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <utility>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/machine.h"

namespace scankit::toolchain {
namespace {

// What is for the processor that this scankit is built for.
std::vector<WheelPin> of_machine(std::vector<WheelPin> x86_64, std::vector<WheelPin> aarch64) {
  return std::string_view(kMachine) == "aarch64" ? std::move(aarch64) : std::move(x86_64);
}
std::uint64_t of_machine(std::uint64_t x86_64, std::uint64_t aarch64) {
  return std::string_view(kMachine) == "aarch64" ? aarch64 : x86_64;
}

// Hashes and sizes are those of the files on the public index; a mirror that gives other bytes is refused.
// The last hash of each is that of the files that the wheel unpacks to. To refresh both for a new release:
//   pip download --no-deps --only-binary :all: --platform manylinux_2_17_x86_64 -d W nvidia-cuda-nvrtc==13.0.88
//   sha256sum W/*.whl; unzip -p W/*.whl '*.dist-info/RECORD' | python3 -c 'if 1:
//     import base64, hashlib, sys
//     rows = [line.split(",") for line in sys.stdin if line.startswith("nvidia/")]
//     lines = [p + "," + base64.urlsafe_b64decode(h[7:] + "=").hex() + "\n" for p, h, _ in rows]
//     print(hashlib.sha256("".join(sorted(lines)).encode()).hexdigest())'
// The index has no 12.1.105 for aarch64, so that --arch release is refused there. Architectures: what each
// library says of itself (nvrtcGetSupportedArchs, nvcc --list-gpu-code).

WheelToolchain nvcc_13_0() {
  return {
      .id = "nvcc-13.0.88",
      .nvcc = true,
      .version = "13.0",
      .wheels = of_machine(
          {{"nvidia-cuda-nvcc", "13.0.88", "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
            37384532, "27624ea374ae9506468dfc7466201ca801eb79c5538aa35ea8c9c7290b2a945c"},
           {"nvidia-nvvm", "13.0.88", "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
            61601415, "cdfc655b1a0556c2e62836619491703f47e24e5176087db50d6e17b83fc7c83e"},
           {"nvidia-cuda-crt", "13.0.88", "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
            134086, "38283a9385485d4022675db7311a67252779e44393f745f698bb2e00cc3a5cf7"},
           {"nvidia-cuda-runtime", "13.0.96",
            "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548", 2243632,
            "15a3142c747018c2c2a287335bd6ad0b5ad019f47febaa7e0668ffef6cde4c01"},
           {"nvidia-cuda-cccl", "13.0.85", "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
            3120526, "5d905bca6ed91342f419dcf797ae693f7a86220f728a449d2036331c5c8f370a"}},
          {{"nvidia-cuda-nvcc", "13.0.88", "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
            32455430, "2c210516ebf9b185ff5e8362b231fe310879443ffab4d547ccc43a633a255e4c"},
           {"nvidia-nvvm", "13.0.88", "c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1",
            59234185, "5c0351de41f2034f4589b498e9c1dcd0ef466b484753dc8f936b32f4e7108975"},
           {"nvidia-cuda-crt", "13.0.88", "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003",
            134086, "38283a9385485d4022675db7311a67252779e44393f745f698bb2e00cc3a5cf7"},
           {"nvidia-cuda-runtime", "13.0.96",
            "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55", 2261060,
            "d7b7804bb4c2e9a0866ef57ba5b613a5d562975f3ba456fece35d6dc23b8d785"},
           {"nvidia-cuda-cccl", "13.0.85", "6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c",
            3120528, "5d905bca6ed91342f419dcf797ae693f7a86220f728a449d2036331c5c8f370a"}}),
      .archs = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121},
      .folder = "/nvidia/cu13",
      .unpacked = of_machine(279149608, 247009576)};
}

}  // namespace

const std::vector<WheelToolchain>& wheel_toolchains() {
  static const std::vector<WheelToolchain> all = {
      {.id = "nvrtc-12.9.86",
       .nvcc = false,
       .version = "12.9",
       .wheels = of_machine({{"nvidia-cuda-nvrtc-cu12", "12.9.86",
                              "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4", 89568129,
                              "9afa693161f9b5a43a3bedac15e9d17af54ee5c2f4efefcf4a34d713789e7acb"}},
                            {{"nvidia-cuda-nvrtc-cu12", "12.9.86",
                              "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead", 44528905,
                              "2e24ac7997cbca2e262cd13aa0cca369356939a11877af8cc4d323ef82df457a"}}),
       .archs = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121},
       .folder = "/nvidia/cuda_nvrtc/lib",
       .unpacked = of_machine(227449426, 109029511)},
      {.id = "nvrtc-13.0.88",
       .nvcc = false,
       .version = "13.0",
       .wheels = of_machine({{"nvidia-cuda-nvrtc", "13.0.88",
                              "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575", 90215200,
                              "3efead03ddb84506eaaa17ac7264c884b4565c7e88df83b8086c7180608bfc02"}},
                            {{"nvidia-cuda-nvrtc", "13.0.88",
                              "d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b", 43015449,
                              "049f04c872b1b5cc4eb3a4d413fb6a31936d575df7e7624b084692789403ad0e"}}),
       .archs = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121},
       .folder = "/nvidia/cu13/lib",
       .unpacked = of_machine(228019534, 103993142)},
      {.id = "nvrtc-13.5.37",
       .nvcc = false,
       .version = "13.5",
       .wheels = of_machine({{"nvidia-cuda-nvrtc", "13.5.37",
                              "86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc", 58185930,
                              "0769a936c80e17552b7de5e9fcd99fe3020f21d4a1e4a444e1ba4d261716edc9"}},
                            {{"nvidia-cuda-nvrtc", "13.5.37",
                              "36e4fa2a8ada293f5693d308e531c196ab6f91cf7a0ff479bf96a537d43a6096", 56419462,
                              "8e0c09df8b1c1839ccd800007272a993d03738d1270c322b1b3003c6278ef944"}}),
       .archs = {75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121},
       .folder = "/nvidia/cu13/lib",
       .unpacked = of_machine(148551478, 137025392)},
      {.id = "nvrtc-12.1.105",
       .nvcc = false,
       .version = "12.1",
       .wheels = of_machine({{"nvidia-cuda-nvrtc-cu12", "12.1.105",
                              "339b385f50c309763ca65456ec75e17bbefcbbf2893f462cb8b90584cd27a1c2", 23671734,
                              "4c93acd063fd3d8cc9d5004bb66b170d63084659fc4cea6bb4fe896efd2e68a3"}},
                            {}),
       .archs = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90},
       .folder = "/nvidia/cuda_nvrtc/lib",
       .unpacked = 63813767},
      nvcc_13_0()};
  return all;
}

// `id` must be in the table.
const WheelToolchain& wheel_toolchain(const std::string& id) {
  const auto& all = wheel_toolchains();
  return *std::find_if(all.begin(), all.end(), [&](const WheelToolchain& one) { return one.id == id; });
}

}  // namespace scankit::toolchain
