// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "builder/toolchain/device_compiler.h"
#include "doctor/base/process.h"
#include "doctor/base/result.h"

// What became of a compiler that made no image, in words that name unit, target and what to do.
namespace scankit {

// How many processes the kernel killed for want of memory: in our control group, and on the machine.
struct KillCount {
  std::optional<std::uint64_t> group, machine;
};
KillCount count_kills();

Error compile_failure(const DeviceCompiler::Job& job, const ProcessResult& ran, const KillCount& before);
// It said that all is well, and what it wrote is not what was asked for.
Error no_image(const DeviceCompiler::Job& job, const ProcessResult& ran);

// Of a log of any length at most 30 lines: those that name an error, each with the two after it; where none
// does, the last ones.
std::string useful_lines(const std::string& log);

}  // namespace scankit
