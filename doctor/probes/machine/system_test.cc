// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/machine/system.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/base/files.h"

namespace scankit::probes {
namespace {

TEST(System, DescribesTheRunningMachine) {
  const auto host = make_real_host();
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(probe_os(*host).value.machine, name.machine);
  EXPECT_EQ(probe_cpu(*host).value.logical, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_GT(probe_memory(*host).value.total, 0u);
  EXPECT_GT(probe_disk(*host, "/").value.free, 0u);
  EXPECT_TRUE(probe_disk(*host, "/nonexistent").state == ProbeState::Failed);
}

TEST(System, ReadsGlibcsVersionFromItsDefinitions) {
  const auto host = make_real_host();
  const auto libc = probe_libc(*host);
  ASSERT_TRUE(libc.present()) << libc.note;
  char version[64] = {};
  ASSERT_GT(::confstr(_CS_GNU_LIBC_VERSION, version, sizeof(version)), 0u);
  EXPECT_EQ("glibc " + libc.value.version, version);
}

// A machine written as files. GPUs and drivers cannot be had here, their text files can.
class Machine : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("scankit-machine");
    ASSERT_TRUE(made);
    folder_.emplace(std::move(*made));
  }
  void file(const std::string& name, const std::string& text) {
    const std::string path = folder_->path() + name;
    ASSERT_TRUE(make_directories(path_dirname(path)));
    ASSERT_TRUE(write_file_atomically(path, text));
  }
  // Like the real host below the root, but a running one: its /proc and /sys are meant.
  class Live : public Host {
   public:
    explicit Live(const std::string& root) : inner_(make_real_host(root)) {}
    Result<std::string> read_file(const std::string& p, std::size_t n) const override {
      return inner_->read_file(p, n);
    }
    Result<std::unique_ptr<ByteSource>> open(const std::string& p) const override { return inner_->open(p); }
    Result<std::vector<DirEntry>> list(const std::string& p) const override { return inner_->list(p); }
    Result<FileInfo> stat(const std::string& p) const override { return inner_->stat(p); }
    Result<FileInfo> lstat(const std::string& p) const override { return inner_->lstat(p); }
    Result<std::string> readlink(const std::string& p) const override { return inner_->readlink(p); }
    Result<std::string> realpath(const std::string& p) const override { return inner_->realpath(p); }
    std::optional<std::string> env(std::string_view) const override { return std::nullopt; }
    bool is_live() const override { return true; }

   private:
    std::unique_ptr<Host> inner_;
  };
  Live host() { return Live(folder_->path()); }
  std::optional<TemporaryDirectory> folder_;
};

TEST_F(Machine, WithoutAGpuSaysSo) {
  EXPECT_EQ(probe_gpus(host()).state, ProbeState::Absent);
  EXPECT_EQ(probe_driver(host()).state, ProbeState::Absent);
  EXPECT_EQ(probe_toolkits(host()).state, ProbeState::Absent);
}

TEST_F(Machine, WithAnH200NamesItAndItsDriver) {
  const std::string device = "/sys/bus/pci/devices/0000:0f:00.0";
  file(device + "/vendor", "0x10de\n");
  file(device + "/class", "0x030200\n");
  file(device + "/device", "0x2335\n");
  file("/sys/bus/pci/devices/0000:10:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0000:10:00.0/class", "0x068000\n");  // an NVSwitch is no GPU
  file("/proc/driver/nvidia/gpus/0000:0f:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n");
  file("/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n");
  const auto gpus = probe_gpus(host());
  ASSERT_EQ(gpus.value.size(), 1u);
  EXPECT_EQ(gpus.value[0].name, "NVIDIA H200");
  EXPECT_EQ(gpus.value[0].sm, "90");
  EXPECT_EQ(probe_driver(host()).value.version, "580.159.04");
}

TEST_F(Machine, WithAnUnknownGpuDoesNotGuessItsCapability) {
  file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  file("/sys/bus/pci/devices/0000:01:00.0/device", "0xfffe\n");
  const auto gpus = probe_gpus(host());
  ASSERT_EQ(gpus.value.size(), 1u);
  EXPECT_EQ(gpus.value[0].sm, "");
}

TEST_F(Machine, WithJetsonOrinFindsTheGpuThatIsOnNoBus) {
  file("/proc/device-tree/compatible",
       std::string("nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0", 63));
  file("/proc/device-tree/model", std::string("NVIDIA Jetson AGX Orin Developer Kit\0", 37));
  file("/etc/nv_tegra_release",
       "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8\n");
  file("/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1", std::string(1u << 20, 'x'));
  file("/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1", std::string(1u << 20, 'x'));
  EXPECT_EQ(probe_os(host()).value.l4t, "36.4.3");
  const auto gpus = probe_gpus(host());
  ASSERT_EQ(gpus.value.size(), 1u) << english(gpus.note);
  EXPECT_EQ(gpus.value[0].name, "NVIDIA Jetson AGX Orin Developer Kit");
  EXPECT_EQ(gpus.value[0].sm, "87");
  EXPECT_EQ(gpus.value[0].sm_source, "device tree");
  EXPECT_EQ(gpus.value[0].pci_address, "");
  EXPECT_EQ(gpus.value[0].details.at("integrated"), 1);
  EXPECT_EQ(probe_driver(host()).value.libcuda_reached, "not by the loader");
  EXPECT_EQ(probe_driver(host()).value.cuda_version, "12.6");
  // Orin has a PCI bus, with a network card and the like on it.
  file("/sys/bus/pci/devices/0001:01:00.0/vendor", "0x10ec\n");
  file("/sys/bus/pci/devices/0001:01:00.0/class", "0x020000\n");
  EXPECT_EQ(probe_gpus(host()).value.size(), 1u);
}

// Grace Hopper: the same processor architecture, and a GPU on the PCI bus.
TEST_F(Machine, OfAServerWithArmIsNoJetson) {
  file("/proc/device-tree/compatible", std::string("nvidia,tegra241\0", 16));
  file("/sys/bus/pci/devices/0009:01:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0009:01:00.0/class", "0x030200\n");
  file("/sys/bus/pci/devices/0009:01:00.0/device", "0x2342\n");
  EXPECT_EQ(probe_os(host()).value.l4t, "");
  EXPECT_EQ(probe_driver(host()).value.cuda_version, "");
  const auto gpus = probe_gpus(host());
  ASSERT_EQ(gpus.value.size(), 1u);
  EXPECT_EQ(gpus.value[0].sm, "90");
  EXPECT_EQ(gpus.value[0].sm_source, "pci-id table");
}

TEST_F(Machine, ReadsAToolkitsVersionFromItsHeader) {
  file("/usr/local/cuda-12.4/bin/nvcc", "");
  file("/usr/local/cuda-12.4/include/cuda.h", "#define CUDA_VERSION 12040\n");
  const auto toolkits = probe_toolkits(host());
  ASSERT_EQ(toolkits.value.size(), 1u);
  EXPECT_EQ(toolkits.value[0].version, "12.4");
}

TEST(Gpus, AreTheSameDeviceInTheSpellingsOfNvmlAndSysfs) {
  EXPECT_TRUE(is_same_pci_device("00000000:0F:00.0", "0000:0f:00.0"));
  EXPECT_FALSE(is_same_pci_device("00000000:0F:00.0", "0000:1f:00.0"));
  EXPECT_FALSE(is_same_pci_device("00000000:0F:00.0", ""));
}

TEST(Gpus, TakeWholeNumbersOfKnownKeysAlone) {
  Gpu gpu;
  take_gpu_details({{"pci", "0000:0F:00.0"},
                    {"multiprocessors", "132"},
                    {"l2", "60x"},
                    {"power", "-1"},
                    {"temperature", ""},
                    {"forged", "1"}},
                   gpu);
  EXPECT_EQ(gpu.details, (std::map<std::string, std::int64_t>{{"multiprocessors", 132}}));
}

}  // namespace
}  // namespace scankit::probes
