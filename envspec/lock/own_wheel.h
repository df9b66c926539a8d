// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

struct RepackedWheel {
  std::string file;   // "scankit_selective_scan_cuda-0.1.0-cp38-abi3-manylinux_2_17_x86_64.whl"
  std::string bytes;  // the same ones from the same installed files
};
// What was built on this machine is on no index: the installed files, by their RECORD, as a wheel again. An
// Error says why that cannot be: a file is missing or was changed, or lies outside of site-packages.
Result<RepackedWheel> repack(const Host& host, const Distribution& distribution);

}  // namespace scankit
