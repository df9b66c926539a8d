// SPDX-License-Identifier: Apache-2.0
#include "builder/toolchain/driver_fit.h"

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/drivers.h"

namespace scankit {

// Read from what NVRTC 11.7 to 13.5 writes; doctor/knowledge/drivers.yaml has the drivers for each.
unsigned cubin_abi_of(const std::string& release, unsigned sm) {
  constexpr unsigned kOldCubinAbi = 7, kNewCubinAbi = 8, kLastOfOld = 90;
  const auto version = Version::parse(release);
  if (!version) return 0;
  return version->part(0) < 13 && sm <= kLastOfOld ? kOldCubinAbi : kNewCubinAbi;
}

bool ptx_fits(const std::string& isa, const std::string& release) {
  const auto wanted = cuda_of_ptx(isa), made_by = Version::parse(release);
  return wanted && made_by && *wanted <= *made_by;
}

namespace {

// The version that decides. That of libcuda counts if there is one: a forward-compatibility libcuda reads
// more than the installed kernel module. Nothing under WSL, since a Windows driver's number compares with
// no Linux driver's.
std::optional<Version> driver_version(const Probed<Driver>& driver) {
  if (!driver.present() || driver.value.libcuda_kind == "wsl") return std::nullopt;
  const bool library = !driver.value.libcuda_version.empty() && driver.value.libcuda_kind != "stub";
  return Version::parse(library ? driver.value.libcuda_version : driver.value.version);
}

std::string text_of(const Version& version) {
  std::string text;
  for (const unsigned part : version.release) text += (text.empty() ? "" : ".") + std::to_string(part);
  return text;
}

}  // namespace

DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<Target>& targets) {
  const auto here = driver_version(driver), made_by = Version::parse(release);
  if (!here || !made_by) return {};
  for (const Target& target : targets) {
    if (target.ptx) {
      // A driver translates the PTX of its own CUDA release and of older ones.
      const auto cuda = cuda_of_driver(*here);
      if (cuda && !cuda->or_newer && *made_by > cuda->cuda && made_by->part(0) >= cuda->cuda.part(0))
        return {say("driver {} does not support the PTX of CUDA {}", text_of(*here), release), true};
      continue;
    }
    const auto drivers = drivers_of_cubin_abi(cubin_abi_of(release, target.sm), target.sm);
    if (!drivers || *here >= drivers->reads) continue;
    return {say("code built by CUDA {} for {} needs driver {} or newer; installed: {}", release,
                target.name(), drivers->reads_text, text_of(*here)),
            drivers->refused_below && *here < *drivers->refused_below};
  }
  return {};
}

}  // namespace scankit
