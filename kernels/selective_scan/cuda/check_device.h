// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "kernels/common/driver_context.h"

// What a check of the kernels needs from a GPU beyond launching: memory, time, and images that it compiled
// itself.
namespace scankit::selective_scan {

class Gpu {
 public:
  // Errc::NotFound, with the reason, where this machine has no usable GPU.
  static Result<Gpu> open();
  int capability() const { return capability_; }
  std::string name() const;
  long long free_bytes() const;

  void* allocate(std::size_t bytes);  // at least 256-byte aligned; exits on failure
  void release(void* memory);
  void fill(void* memory, unsigned char value, std::size_t bytes);
  void to_device(void* device, const void* host, std::size_t bytes);
  void to_host(void* host, const void* device, std::size_t bytes);
  // Milliseconds of each of `runs` runs of the plan after `warm` unmeasured ones.
  std::vector<float> time(device::Plan& plan, void* workspace, int warm, int runs);
  // Runs the plan in memory of its own and waits for it. Exits on failure.
  void run(device::Plan& plan);

 private:
  int capability_ = 0;
};

// Compiles every unit of `units` (units.def) from `source` for the GPU by nvcc, packs the images as a
// finished module holds them and registers them with the loader. `cubins`: a folder of UNIT.cubin made
// before; empty: compile, with `more` defines. Errc::NotFound: no compiler.
Result<void> load_units(const std::string& source, const std::string& units, const std::string& cubins,
                        int capability, const std::string& more = "");
// The compiling alone, into `folder`; needs no GPU.
Result<void> compile_units(const std::string& source, const std::string& units, const std::string& folder,
                           int capability, const std::string& more);

}  // namespace scankit::selective_scan
