// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

// What `doctor -v` shows of a GPU: what deviceQuery and nvidia-smi -q tell, as far as its driver told it.
namespace scankit {

struct GpuRow {
  std::string label, value;  // in the reader's language: "L2 cache", "50 MiB"
};
// In the order of gpu_details.def; nothing where the driver was not asked or told nothing.
std::vector<GpuRow> gpu_rows(const Gpu& gpu);

// One sentence for each setting or state that slows programs down or stops them: "PCIe runs with 1 of 16
// lanes: copies between host and GPU are slow". Empty for a GPU as it should be.
std::vector<std::string> unusual_of(const Gpu& gpu);

}  // namespace scankit
