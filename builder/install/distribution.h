// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// The module as an installed distribution (packaging.python.org, "Recording installed projects" and the wheel
// format), so that pip lists and uninstalls it.
// Each module is a distribution of its own.
std::string module_file(const std::string& module);        // selective_scan_cuda.abi3.so
std::string distribution_stem(const std::string& module);  // scankit_selective_scan_cuda
std::string dist_info_name(const std::string& module);     // scankit_selective_scan_cuda-VERSION.dist-info

struct InstalledFile {
  std::string path;  // relative to the import folder
  std::string bytes;
};
// The files of the dist-info folder, RECORD last. `bytes` are the module's, `manifest` the builder's JSON.
std::vector<InstalledFile> dist_info_files(const std::string& module, const std::string& bytes,
                                           const std::string& manifest);
// Those of a wheel, which leave to the installer what it writes itself.
std::vector<InstalledFile> wheel_info_files(const std::string& module, const std::string& bytes,
                                            const std::string& manifest);

}  // namespace scankit
