// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/fatbin.h"
#include "doctor/host/host.h"

namespace scankit {

// What a finished module must contain. The file is read back with the doctor's own readers and not with the
// code that wrote it, so that what is promised here is what the doctor will see on the user's machine.
struct ModulePromise {
  std::string module;             // exports PyInit_<module> and nothing else
  std::vector<BuiltCode> images;  // each there with its size and hash
  bool for_one_torch = false;     // may need libraries; torch_flavor/assertions.h has what it promises
};
// The Error names the first promise that does not hold.
Result<void> assert_module(const Host& host, const std::string& path, const ModulePromise& promise);

}  // namespace scankit
