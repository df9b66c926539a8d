// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/version.h"
#include "envspec/spec/spec.h"

// What an index cannot tell: which builds of torch exist, what each contains and needs, and where the compiled
// modules of mamba-ssm and causal-conv1d come from (torch_builds.yaml, packages.yaml). A key that is in no row is
// unknown, never the nearest row.
namespace scankit::envspec {

// GPUs are compute capabilities without the dot: 90, 120.
using Archs = std::vector<unsigned>;
inline std::string sm(unsigned gpu) { return "sm_" + std::to_string(gpu); }

struct TorchBuild {
  std::string machine;  // "x86_64", "aarch64"
  Version cuda;
  std::string cuda_text;        // "12.8"
  bool on_index = false;        // the one build of its release that a package index has for this machine
  std::string glibc;            // "2.28"
  Archs archs;                  // GPUs whose code it contains
  std::optional<unsigned> ptx;  // the newest PTX in it
  std::string packing;          // "lz4", "zstd", "unknown"
  std::string source;
  std::string backend() const;  // "cu128", as uv and the version's local part write it
};
struct TorchRelease {
  std::string minor, version;  // "2.10", "2.10.0"
  std::string triton;          // the release that it requires; "" for none
  std::string numpy;           // "numpy<2" where its own code was built for NumPy 1; else ""
  std::vector<TorchBuild> builds;
};
const std::vector<TorchRelease>& torch_releases();  // newest first

// Wheels on the release page of a project, all of them for x86_64.
struct PublishedWheels {
  unsigned cuda = 0;  // major release
  std::vector<std::string> torch, pythons;
  Archs archs;
  std::string glibc;
};
// A pin whose wheels for one processor need a newer glibc than torch's own.
struct PinWheels {
  std::string machine, pin, glibc;  // "aarch64", "tilelang==0.1.8", "2.34"
};
// Releases of another package that a release works with, where both are installed.
struct Partner {
  std::string name;  // "causal-conv1d"
  VersionRange range;
  std::string text;  // "causal-conv1d>=1.4,<1.5.1"
};
struct PackageRelease {
  std::string version;
  bool after_the_table = false;   // stands for releases newer than the rows; only for who demands one
  bool old = false;               // only where nothing newer is left by who asks
  std::string python, triton;     // ranges that its metadata requires; "" for any
  std::vector<std::string> pins;  // further exact requirements that decide what can be installed
  std::vector<PinWheels> pin_wheels;
  std::vector<Partner> partners;
  std::vector<std::string> required;  // names of other rows
  std::string keep_build;  // the variable that asks for the CUDA module where it is left out by default
  Archs built_for, built_before_13;
  std::vector<PublishedWheels> wheels;
};
struct PackageRow {
  std::string name, module;             // "mamba-ssm", "selective_scan_cuda"
  std::string skip_build, force_build;  // variables of its setup.py
  std::vector<std::string> imports;     // packages that it needs in releases that only neighbours.yaml limits
  std::vector<PackageRelease> releases;  // newest first
};
// nullptr for a package that is in no row.
const PackageRow* package_row(std::string_view name);

// Whether a GPU runs the code, by the doctor's own rule: the GPUs of one major compute capability run each other's
// code, older on newer, except for the chips of the Tegra line.
bool has_code_for(const Archs& archs, unsigned gpu);
// The same by PTX, which the driver compiles.
bool has_ptx_for(const std::optional<unsigned>& ptx, unsigned gpu);

// Whether any build of torch for this processor has code for the GPU.
bool any_build_has_code_for(const std::string& machine, unsigned gpu);

// Whether any table has this GPU; nothing is said of one that none has.
bool is_known_gpu(unsigned gpu);

// "3.10" to "3.15" in the order of versions, for which any torch of the table has wheels.
const std::vector<std::string>& known_target_pythons();

}  // namespace scankit::envspec
