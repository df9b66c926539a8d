// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/torch_flavor/environment.h"

namespace scankit {

// What scankit carries for the build (kernels/torch_parts.cmake): one source file, and archives of everything
// that includes no header of torch and is therefore the same for every torch.
struct TorchParts {
  std::string_view source;          // the one file that includes torch's headers
  std::string_view entries, parts;  // archives: each module's PyInit_; everything else
};
const TorchParts& torch_parts();

struct HostModuleRequest {
  std::string module;  // "selective_scan_cuda"
  const TorchEnvironment* environment = nullptr;
  const Cache* cache = nullptr;
  TorchParts parts;
  std::function<void(const std::string&)> progress;  // may be empty
};

struct HostModule {
  std::string bytes;  // a shared library without device images
  Inputs inputs;      // what it depends on
  bool from_cache = false;
};

// Compiles the one file and links the module. Takes it from the cache if the compiler, its flags, torch,
// Python and every header that was read are the same as before. The Error has the compiler's errors, the
// first one in the message.
Result<HostModule> build_host_module(const HostModuleRequest& request);

// The files that `-MD` lists in Make's syntax, without the target.
std::vector<std::string> dependencies_in(std::string_view makefile);

}  // namespace scankit
