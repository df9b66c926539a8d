// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "envspec/suggest/suggest_test.h"

namespace scankit::envspec {
namespace {

// The doctor's own rule: code of a Tegra chip and of a desktop one cannot be exchanged.
TEST(Suggest, ExchangesNoCodeWithTegra) {
  EXPECT_TRUE(has_code_for({86}, 89));
  EXPECT_TRUE(has_code_for({87}, 87));
  EXPECT_FALSE(has_code_for({86}, 87));
  EXPECT_FALSE(has_code_for({87}, 89));
  EXPECT_FALSE(has_code_for({70}, 72));
  EXPECT_TRUE(has_code_for({100}, 103));
}

// A Jetson: what its GPU is, which processor belongs to it, and which CUDA its driver supports.
TEST(Suggest, KnowsAJetson) {
  const auto notes_of = [](const std::string& gpu, const std::string& machine) {
    DescribedTarget described;
    described.machine = machine;
    described.gpus = {gpu};
    const SuggestTarget target = target_of(described, Snapshot(), "a test").value();
    std::string all;
    for (const Message& note : target.notes) all += english(note) + "\n";
    return all;
  };
  EXPECT_NE(notes_of("sm_87", "aarch64").find("NVIDIA publishes for its JetPack"), std::string::npos);
  EXPECT_NE(notes_of("sm_110", "x86_64").find("--machine aarch64"), std::string::npos);
  EXPECT_EQ(notes_of("sm_110", "aarch64").find("sm_110"), std::string::npos);
  EXPECT_EQ(notes_of("sm_90", "x86_64").find("aarch64"), std::string::npos);

  Snapshot thor;
  thor.os.value.machine = "aarch64";
  thor.os.value.l4t = "36.4.3";
  thor.driver = Probed<Driver>::of({});
  thor.driver.value.version = "540.4.0";
  thor.driver.value.cuda_version = "12.6";
  DescribedTarget described;
  described.gpus = {"sm_110"};
  described.glibc = "2.35";
  const SuggestRequest request = target_of(described, thor, "a test").value().request;
  EXPECT_EQ(request.machine, "aarch64");
  const Suggestion suggestion = suggest(request);
  ASSERT_FALSE(suggestion.ruled_out.empty());
  EXPECT_EQ(english(suggestion.ruled_out.front().chain.front()), "driver 540.4.0 supports CUDA up to 12.6");
}

// Its driver comes with JetPack: nobody can install another one. The table of drivers is of other machines.
TEST(Suggest, SendsNoJetsonToAnotherDriver) {
  const char* thor = "{machine: aarch64, gpu: sm_110, driver: 540.4.0, glibc: '2.39', python: '3.12'}";
  const Suggestion suggestion = suggest(request_of(YAML::Load(thor)));
  ASSERT_FALSE(suggestion.changes.empty());
  EXPECT_EQ(english(suggestion.changes.front().text), "a JetPack with a driver of branch 580 or newer");
  ASSERT_FALSE(suggestion.ruled_out.empty());
  const auto& chain = suggestion.ruled_out.front().chain;
  EXPECT_EQ(english(chain.front()), "driver 540.4.0 is of branch 540");
  EXPECT_EQ(english(chain.back()),
            "CUDA 13 needs a driver of branch 580 or newer, which a Jetson gets only with a newer JetPack");
  const Suggestion server = suggest(request_of(
      YAML::Load("{machine: aarch64, gpu: sm_90, driver: 540.4.0, glibc: '2.39', python: '3.12'}")));
  ASSERT_FALSE(server.changes.empty());
  EXPECT_EQ(english(server.changes.front().text), "a driver of 580.65.06 or newer");
}

// Minor-version compatibility is promised for other GPUs.
TEST(Suggest, ClaimsNothingOfANewerCudaOnAJetson) {
  SuggestRequest request =
      request_of(YAML::Load("{machine: aarch64, gpu: sm_110, driver: 580.00, glibc: '2.39', python: '3.12', "
                            "packages: [torch==2.15.*]}"));
  request.driver_cuda = Version::parse("13.0");
  const Suggestion suggestion = suggest(request);
  ASSERT_FALSE(suggestion.sets.empty());
  std::string notes;
  for (const Message& note : suggestion.sets.front().notes) notes += english(note) + "\n";
  EXPECT_EQ(notes,
            "driver 580.00 supports CUDA 13.0; whether a build with CUDA 13.2 runs on it is not known for a "
            "Jetson\n");
}

}  // namespace
}  // namespace scankit::envspec
