// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/host/host.h"

// A build with -lineinfo writes the directories of its sources and of torch's headers into the device code, and nvcc has
// no option that writes others there. So builds of `env create` and `env sync` leave -lineinfo out.
namespace scankit::envspec {

// Writes a program into an existing directory that calls nvcc without -lineinfo: the one of the user's PYTORCH_NVCC,
// else the one that torch's cpp_extension would choose when it runs. Returns the variable that has torch use it.
Result<std::pair<std::string, std::string>> write_nvcc_wrapper(const Host& host, const std::string& folder);

// What to say of the build of `package` once it has ended; nothing where it did not ask for -lineinfo.
std::optional<Message> line_info_note(const std::string& folder, const std::string& package);

}  // namespace scankit::envspec
