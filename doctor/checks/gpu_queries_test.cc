// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/gpu_queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "doctor/checks/recorded_cases.h"
#include "doctor/model/snapshot.h"

namespace scankit::checks {
namespace {

Gpu gpu(const std::string& sm, const std::string& uuid) {
  Gpu one;
  one.sm = sm, one.uuid = uuid;
  return one;
}

Snapshot two_gpus() {
  Snapshot here = snapshot_from_json(machine_of(nlohmann::json::object()).dump()).value();
  here.gpus = Probed<std::vector<Gpu>>::of({gpu("90", "GPU-11aa-1"), gpu("90", "GPU-22bb-2")});
  return here;
}

// "VH": the first GPU is visible and the second one hidden; U: unclear. Behind it what CUDA refuses or finds twice.
std::string seen(Snapshot here, const std::string& value) {
  here.environment["CUDA_VISIBLE_DEVICES"] = value;
  std::string text;
  for (const SeenGpu& each : seen_gpus(here)) text += "VHU"[static_cast<int>(each.visibility)];
  const auto set = visible_devices(here);
  if (!set->refused.empty()) text += " refused " + english(set->refused);
  if (!set->twice.empty()) text += " twice " + set->twice;
  return text;
}

using Table = std::vector<std::pair<std::string, std::string>>;

void expect(const Snapshot& here, const Table& table) {
  for (const auto& [value, wanted] : table) EXPECT_EQ(seen(here, value), wanted) << '"' << value << '"';
}

TEST(VisibleDevices, ByNumber) {
  expect(two_gpus(), {{"", "HH"},
                      {"0", "VH"},
                      {"1", "HV"},
                      {"0,1", "VV"},
                      {"1,0", "VV"},
                      {" 0\t,\t 1 ", "VV"},
                      {"1 ", "HV"},
                      {"+1", "HV"},
                      {"-0", "VH"},
                      {"1x", "HV"},
                      {"0,", "VH"},
                      {"-1", "HH refused -1"},
                      {"2", "HH refused 2"},
                      {"x", "HH refused x"},
                      {"+", "HH refused +"},
                      {",0", "HH refused an empty entry"},
                      {"0,,1", "VH refused an empty entry"},
                      {"0,2,1", "VH refused 2"},
                      {"99999999999999999999999", "HH refused 99999999999999999999999"},
                      {"0,0", "HH twice 0"},
                      {"0,1,+0", "HH twice +0"}});
  EXPECT_FALSE(visible_devices(two_gpus()));
}

TEST(VisibleDevices, ByUuid) {
  expect(two_gpus(), {{"GPU-11aa-1", "VH"},
                      {"GPU-11AA", "VH"},
                      {"GPU-2", "HV"},
                      {"GPU-22bb \t", "HV"},
                      {"GPU-11aa-1 and more", "VH"},
                      {"GPU-22bb,GPU-11aa", "VV"},
                      {"GPU-", "HH refused GPU-"},
                      {"GPU-33", "HH refused GPU-33"},
                      {"GPU-11aa,GPU-1", "HH twice GPU-1"},
                      {"GPU-11aa,1", "VH refused 1"},
                      {"1,GPU-11aa", "HV refused GPU-11aa"}});
  Snapshot unnamed = two_gpus();  // NVML was not asked
  for (Gpu& each : unnamed.gpus.value) each.uuid = "";
  expect(unnamed, {{"GPU-11", "UU"}, {"GPU-11,GPU-22", "UU"}, {"GPU-11,GPU-11", "HH twice GPU-11"}});
}

TEST(VisibleDevices, ByInstance) {
  expect(two_gpus(), {{"MIG-1", "UU"},
                      {"MIG-", "HH refused MIG-"},
                      {"MIG-1,MIG-2", "UU"},
                      {"MIG-1,MIG-1", "HH twice MIG-1"},
                      {"MIG-1,GPU-11", "VU"},
                      {"GPU-22,MIG-1", "UV"},
                      {"MIG-1,0", "UU refused 0"}});
  Snapshot one = two_gpus();
  one.gpus.value.pop_back();
  expect(one, {{"MIG-1", "V"}, {"0", "V"}, {"1", "H refused 1"}});
}

// CUDA numbers them from the fastest on, unless told otherwise.
TEST(VisibleDevices, ByNumberAmongDifferentGpus) {
  Snapshot here = two_gpus();
  here.gpus.value[1].sm = "70";
  expect(here, {{"0", "UU"}, {"GPU-11", "VH"}, {"", "HH"}});
  here.environment["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST";
  expect(here, {{"0", "UU"}});
  here.environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  expect(here, {{"0", "VH"}, {"1", "HV"}});
  here.gpus.value[1].sm_source = "described";
  expect(here, {{"", "HV"}});
}

bool runs(const std::string& kind, const std::string& name, unsigned on) {
  DeviceImage image;
  image.kind = kind;
  image.sm = static_cast<unsigned>(std::stoul(name));
  image.specific = name.substr(std::min(name.find_first_not_of("0123456789"), name.size()));
  return runs_on(image, on);
}

TEST(DeviceImage, RunsOnTheGpusThatItIsFor) {
  struct Row {
    std::string kind, name;
    std::vector<unsigned> on, not_on;
  };
  const std::vector<Row> rows = {
      {"cubin", "80", {80, 86, 89}, {75, 79, 90, 100}},
      {"cubin", "86", {86, 89}, {80}},
      {"cubin", "90", {90}, {89, 100}},
      {"cubin", "100", {100, 103}, {90, 120}},
      {"cubin", "90a", {90}, {89, 91, 100}},
      {"cubin", "100f", {100, 103}, {99, 120}},
      {"cubin", "103f", {103}, {100}},
      {"ptx", "80", {80, 86, 87, 90, 120}, {75}},
      {"ptx", "90a", {90}, {100}},
      {"ptx", "100f", {100, 103}, {110}},
      {"lto", "90", {}, {90, 100}},
      // Chips of the Tegra line share no code with the others of their major version.
      {"cubin", "50", {50, 52}, {53}},
      {"cubin", "60", {60, 61}, {62}},
      {"cubin", "70", {70, 75}, {72}},
      {"cubin", "87", {87}, {88, 89}},
      {"cubin", "101", {101}, {103}},
      {"cubin", "100", {}, {101}},
      {"cubin", "110", {110}, {112}},
      {"cubin", "53", {53}, {54}},
      {"cubin", "62", {62}, {63}},
      {"cubin", "72", {72}, {75}}};
  for (const Row& row : rows) {
    for (const unsigned on : row.on)
      EXPECT_TRUE(runs(row.kind, row.name, on)) << row.kind << row.name << " " << on;
    for (const unsigned on : row.not_on)
      EXPECT_FALSE(runs(row.kind, row.name, on)) << row.kind << row.name << " " << on;
  }
}

// A kernel module of 535, and a libcuda of 580 that the loader takes.
Snapshot with_driver() {
  Snapshot here = two_gpus();
  Driver driver;
  driver.version = "535.183.01";
  driver.source = "/proc/driver/nvidia/version";
  driver.libcuda = "/usr/lib/libcuda.so.580.95.05";
  driver.libcuda_version = "580.95.05";
  driver.libcuda_kind = "driver";
  driver.libcuda_reached = "ld.so.cache";
  here.driver = Probed<Driver>::of(driver);
  return here;
}

std::string text(const std::optional<Version>& version) {
  return version ? version->major_minor() : "unknown";
}

TEST(Driver, OfTheUserIsTheLibraryThatTheLoaderTakes) {
  Snapshot here = with_driver();
  Driver& driver = here.driver.value;
  EXPECT_EQ(text(kernel_driver(here)), "535.183");
  EXPECT_EQ(text(user_driver(here)), "580.95");
  driver.libcuda_kind = "stub";
  EXPECT_EQ(text(user_driver(here)), "535.183");
  driver.libcuda_kind = "driver", driver.libcuda_reached = "not by the loader";
  EXPECT_EQ(text(user_driver(here)), "535.183");
  driver.libcuda_reached = "ld.so.cache", driver.libcuda_version = "";
  EXPECT_EQ(text(user_driver(here)), "535.183");
  driver.libcuda_version = "580.95.05", driver.source = "described";
  EXPECT_EQ(text(kernel_driver(here)), "unknown");
  EXPECT_EQ(text(user_driver(here)), "535.183");
  driver.source = driver.libcuda;  // a container without /proc/driver
  EXPECT_EQ(text(user_driver(here)), "580.95");
  driver.source = "/sys/module/nvidia/version";
  EXPECT_EQ(text(kernel_driver(here)), "535.183");
  here.driver.state = ProbeState::Failed;
  EXPECT_EQ(text(user_driver(here)), "unknown");
  EXPECT_EQ(text(kernel_driver(here)), "unknown");
}

TEST(Driver, SupportsTheCudaThatNvmlTellsElseThatOfItsBranch) {
  Snapshot here = with_driver();
  Driver& driver = here.driver.value;
  const auto supported = [&] {
    const auto cuda = supported_cuda(here);
    return cuda ? cuda->cuda.major_minor() + (cuda->or_newer ? " or newer, " : ", ") + cuda->evidence.fact
                : "unknown";
  };
  EXPECT_EQ(supported(), "13.0, /driver/value/libcuda_version");
  driver.libcuda_reached = "not by the loader";
  EXPECT_EQ(supported(), "12.2, /driver/value/version");
  driver.libcuda_version = "";
  EXPECT_EQ(supported(), "12.2, /driver/value/version");
  driver.cuda_version = "12.4";
  EXPECT_EQ(supported(), "12.4, /driver/value/cuda_version");
  driver.libcuda_kind = "compat", driver.libcuda_reached = "LD_LIBRARY_PATH",
  driver.libcuda_version = "580.95.05";
  EXPECT_EQ(supported(), "13.0, /driver/value/libcuda_version");
  driver.libcuda_version = "", driver.version = "999.1";
  EXPECT_NE(supported().find(" or newer, /driver/value/version"), std::string::npos) << supported();
  driver.version = "1.1";
  EXPECT_EQ(supported(), "unknown");
  driver.version = "unknown";
  EXPECT_EQ(supported(), "unknown");
  here.driver.state = ProbeState::Failed;
  driver.libcuda_kind = "driver";
  EXPECT_EQ(supported(), "unknown");
}

// Windows numbers its drivers in its own way: only the branch can be compared.
TEST(Driver, OfWindowsIsComparedByItsBranch) {
  Snapshot here = with_driver();
  here.driver.value.libcuda_version = "";
  DeviceImage image;
  image.kind = "cubin", image.sm = 90, image.elf_abi = 8, image.compression = "zstd";
  const auto answers = [&](const char* version, bool wsl) {
    here.driver.value.version = version;
    here.os.value.wsl = wsl;
    const auto unpacks = driver_unpacks(here, image);
    static const char* const kAbi[] = {"read", "refused", "unknown"};
    return std::string(!unpacks   ? "?"
                       : *unpacks ? "unpacks"
                                  : "packed") +
           " " + kAbi[static_cast<int>(driver_reads_cubin_abi(here, image))];
  };
  EXPECT_EQ(answers("549.99", false), "packed refused");
  EXPECT_EQ(answers("549.99", true), "packed refused");
  EXPECT_EQ(answers("550.10", false), "packed refused");
  EXPECT_EQ(answers("550.10", true), "unpacks refused");
  EXPECT_EQ(answers("580.02", false), "unpacks unknown");
  EXPECT_EQ(answers("580.02", true), "unpacks read");
  EXPECT_EQ(answers("580.65.06", false), "unpacks read");
  EXPECT_EQ(answers("580.65", false), "unpacks read");  // some sources shorten it
  EXPECT_EQ(answers("581.1", true), "unpacks read");
  EXPECT_EQ(answers("main", false), "? read");  // nobody knows, and others say so
  image.kind = "ptx";
  EXPECT_EQ(answers("550.10", false), "packed read");
  image.kind = "cubin", image.elf_abi = 0, image.compression = "none";
  EXPECT_EQ(answers("550.10", false), "unpacks read");
}

TEST(Gpus, AreOfNoUseWhereNothingComputesOnThem) {
  Snapshot here = two_gpus();
  here.torch.value.cuda = "";
  EXPECT_EQ(english(no_use_of_gpus(here)), "neither torch nor a checked module uses a GPU");
  for (const ProbeState state : {ProbeState::Failed, ProbeState::NotRun}) {
    here.torch.state = state;
    EXPECT_EQ(english(no_use_of_gpus(here)), "");
  }
  here.torch.state = ProbeState::Absent;
  EXPECT_NE(no_use_of_gpus(here), "");
  here.extensions.value[0].images = {DeviceImage{}};
  EXPECT_EQ(english(no_use_of_gpus(here)), "");
  here.extensions.value[0].images.clear();
  here.torch.value.cuda = "13.0";  // of a torch that is not there
  EXPECT_NE(no_use_of_gpus(here), "");
  here.torch.state = ProbeState::Present;
  EXPECT_EQ(english(no_use_of_gpus(here)), "");
  here.gpus = Probed<std::vector<Gpu>>::absent("no GPU");
  EXPECT_EQ(english(no_use_of_gpus(here)), "GPUs: no GPU");
}

TEST(Gpus, NameTheArchitectureOfARebuild) {
  Snapshot here = two_gpus();
  Extension& file = here.extensions.value[0];
  file.module = "other", file.distribution = "einops";
  const DeviceCode code{file.path, "other", "", nullptr};
  const auto archs = [&](const std::string& sm) {
    here.gpus.value[0].sm = sm;
    const auto fixes = rebuild_for(here, code, seen_gpus(here)[0], "otherwise");
    const auto* rebuild = std::get_if<RebuildPackage>(&fixes.front());
    return rebuild == nullptr ? "none" : rebuild->environment.at(0).second;
  };
  EXPECT_EQ(archs("90"), "9.0");
  EXPECT_EQ(archs("120"), "12.0");
  EXPECT_EQ(archs("9"), "none");
  EXPECT_EQ(archs(""), "none");
}

}  // namespace
}  // namespace scankit::checks
