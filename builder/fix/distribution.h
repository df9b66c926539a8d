// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "builder/compile/build.h"

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
// "cp38-abi3-manylinux_2_17_x86_64"; of the torch flavor the Python's own, "cp311-cp311-linux_x86_64".
std::string wheel_tag(const BuiltModule& built);
// Its line of RECORD, with the hash.
std::string record_line(const InstalledFile& file);
// The files of the dist-info folder, RECORD last.
std::vector<InstalledFile> dist_info_files(const BuiltModule& built);
// Those of a wheel, which leave to the installer what it writes itself.
std::vector<InstalledFile> wheel_info_files(const BuiltModule& built);

// The files as a ZIP archive, uncompressed and dated 1980: the same bytes from the same files.
std::string stored_zip(const std::vector<InstalledFile>& files);

}  // namespace scankit
