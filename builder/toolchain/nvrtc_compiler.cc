// SPDX-License-Identifier: Apache-2.0
#include "builder/toolchain/device_compiler.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/host/gpu_helper.h"

namespace scankit {

std::string NvrtcCompiler::said() const { return say("NVRTC {} ({})", nvrtc_.version, nvrtc_.origin); }

const std::vector<std::string>& NvrtcCompiler::common_flags() const {
  // No -lineinfo: it writes the folder into the image. The language is that of the rest of the project.
  // params.h is shared with the host and marks nothing: NVRTC would refuse its constexpr functions as host
  // code.
  // C++20 is NVRTC's from 12.0 on; the device code is C++17 as well.
  static const std::vector<std::string> flags = {"--std=c++20", "--device-as-default-execution-space"};
  static const std::vector<std::string> older = {"--std=c++17", "--device-as-default-execution-space"};
  return nvrtc_.version.starts_with("11.") ? older : flags;
}

void NvrtcCompiler::add_inputs(Key& key) const { key.add("helper", sha256_hex(gpu_helper_program())); }

Result<ProcessResult> NvrtcCompiler::compile(const Job& job) const {
  std::vector<std::string> args = {
      "nvrtc", "--lib", nvrtc_.path, "--arch", job.target->name(), job.target->ptx ? "--ptx" : "--cubin",
      "--out", job.out};
  if (!nvrtc_.builtins.empty()) args.insert(args.end(), {"--builtins", nvrtc_.builtins});
  args.insert(args.end(), common_flags().begin(), common_flags().end());
  args.insert(args.end(), job.unit->flags.begin(), job.unit->flags.end());
  args.push_back(job.source);
  return run_gpu_helper(args, job.timeout);
}

}  // namespace scankit
