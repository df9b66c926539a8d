// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The one entry to all probes: take_snapshot() calls them in the order in which they need each other's
// facts. Checks and renderers read only the Snapshot that it returns, never the machine.
namespace scankit::probes {

struct NamedFiles;

// What to examine, and how deeply. The defaults leave out whatever reads every package, starts a helper or
// lists all exported names. doctor, selftest and fix fill this from their own options.
struct SnapshotRequest {
  std::string python;  // as choose_python() answered
  std::vector<std::string>
      modules;                  // the user named these: their absence is a fault; empty: the two lists below
  NamedFiles* named = nullptr;  // --so: only these files are under diagnosis
  bool audit = false;           // every compiled extension of the environment too
  bool audit_linked = false;    // of these, the ones that link torch or CUDA
  std::vector<std::string> required;  // names of modules or distributions that have to be there
  std::string sources;                // a folder of sources that the user named; "": the current one
  bool with_exports = false;          // also the names of every library after `import torch`
  bool ask_nvml = false;              // start the helper that loads the driver's NVML
  bool gpu_details = false;           // and ask it and the CUDA driver for all that they tell of each GPU
  std::function<void(const Message& phase)> progress;          // may be empty
  std::function<void(std::size_t done, std::size_t of)> part;  // of a long phase; may be empty
};

inline const std::vector<std::string> kDefaultModules = {"selective_scan_cuda", "causal_conv1d_cuda"};
// VMamba's. Looked for too, and part of the snapshot where a file of one is on the path or something
// installed imports it unguarded: few have them, and csms6s.py tries one after the other and takes what is
// there.
inline const std::vector<std::string> kRareModules = {"selective_scan_cuda_core",
                                                      "selective_scan_cuda_oflex"};

// Runs every static probe. Never fails: what cannot be read is a Probed that says why. Starts no Python.
Snapshot take_snapshot(const Host& host, const SnapshotRequest& request);

}  // namespace scankit::probes
