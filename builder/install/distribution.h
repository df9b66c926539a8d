// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// The module as an installed distribution (packaging.python.org, "Recording installed projects" and the wheel
// format), so that pip lists and uninstalls it.
inline constexpr const char* kDistributionName = "scankit-selective-scan-cuda";
inline constexpr const char* kDistributionStem = "scankit_selective_scan_cuda";
inline constexpr const char* kModuleFile = "selective_scan_cuda.abi3.so";

struct InstalledFile {
  std::string path;  // relative to the import folder
  std::string bytes;
};
std::string dist_info_name();  // scankit_selective_scan_cuda-VERSION.dist-info
// The files of the dist-info folder, RECORD last. `module` are the module's bytes, `manifest` the builder's
// JSON.
std::vector<InstalledFile> dist_info_files(const std::string& module, const std::string& manifest);

}  // namespace scankit
