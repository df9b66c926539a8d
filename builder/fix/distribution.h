// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "builder/compile/build.h"

namespace scankit::fix {

// A module as an installed distribution, so that pip lists and uninstalls it (packaging.python.org,
// "Recording installed projects" and the wheel format). Each module is a distribution of its own.
std::string module_file(const std::string& module);  // selective_scan_cuda.abi3.so
// The same for one Python. A free-threaded one has the same bytes under its own suffix,
// selective_scan_cuda.cpython-314t-x86_64-linux-gnu.so: installers refuse abi3 for it, and 3.15t opens no .abi3.so.
std::string module_file(const std::string& module, const Python& python);
std::string distribution_stem(const std::string& module);  // scankit_selective_scan_cuda
std::string dist_info_name(const std::string& module);     // scankit_selective_scan_cuda-VERSION.dist-info

struct InstalledFile {
  std::string path;  // relative to the import folder
  std::string bytes;
};
// "cp38-abi3-manylinux_2_17_x86_64" for the universal flavor, or for the processor that scankit is built for.
// For a free-threaded Python, "cp314-cp314t-manylinux_2_17_x86_64". A torch flavor's tag names its own Python and
// no glibc: "cp311-cp311-linux_x86_64".
std::string wheel_tag(const compile::BuiltModule& built);
// Its line of RECORD, with the hash.
std::string record_line(const InstalledFile& file);
// The files of the .dist-info directory as an installer leaves them, RECORD last.
std::vector<InstalledFile> dist_info_files(const compile::BuiltModule& built);
// Those of a wheel: without INSTALLER and REQUESTED, which the installer writes.
std::vector<InstalledFile> wheel_info_files(const compile::BuiltModule& built);

// The files as a ZIP archive, uncompressed and dated 1980, so that the same files give the same bytes. Sizes
// and offsets must stay below 4 GB.
std::string stored_zip(const std::vector<InstalledFile>& files);

}  // namespace scankit::fix
