// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/probes/extensions/extension_resolve.h"

// Libraries that the loader takes although they lack what is wanted of them: another release of a CUDA
// library or of libstdc++ under the same soname. Why it takes them, and whether it would without
// LD_LIBRARY_PATH.
namespace scankit {

// Of torch's own libraries, as `import torch` binds them.
std::vector<BindingMismatch> mismatches_of_torch(const Host& host, const Snapshot& so_far,
                                                 ExtensionResolver& resolver);
// Of one module and what it brings, behind `import torch`.
std::vector<BindingMismatch> mismatches_of_module(const Host& host, const Snapshot& so_far,
                                                  ExtensionResolver& resolver, const std::string& path);

// What torch's metadata demands of nvidia-* wheels, itself and through the cuda-toolkit package. Implemented
// in doctor/probes/packages/cuda_pins.cc.
std::vector<CudaPin> cuda_pins(const Host& host, const Snapshot& so_far);

}  // namespace scankit
