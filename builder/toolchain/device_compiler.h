// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/module/target.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/process.h"

namespace scankit {

// One compile unit: a kernel instance, chosen by its flags from the one source text.
struct Unit {
  std::string name;
  std::vector<std::string> flags;
};

// Makes one unit for one target into one image, by a child process. The cache, the order of the work,
// failures and the manifest are the same for every compiler (compile/compile.h). compile() is called by
// several threads at once.
class DeviceCompiler {
 public:
  // One call of compile(). The pointers outlive it.
  struct Job {
    const Unit* unit = nullptr;
    const Target* target = nullptr;
    std::string source;  // the file to read, absolute
    std::string out;     // the file to write, in the same folder
    std::chrono::milliseconds timeout{0};
  };

  virtual ~DeviceCompiler() = default;
  virtual std::string kind() const = 0;     // "nvrtc", "nvcc": stands in the manifest
  virtual std::string version() const = 0;  // "13.0"
  virtual std::string sha256() const = 0;   // of the programs and libraries that decide over the bytes
  virtual std::string said() const = 0;     // for people: "NVRTC 13.0 (toolkit /usr/local/cuda)"
  // The flags that every unit gets, before its own.
  virtual const std::vector<std::string>& common_flags() const = 0;
  // Adds the inputs that only this compiler has; KeyMaker::key() adds those of all compilers. An input that
  // is left out here makes the cache return stale code.
  virtual void add_inputs(Key& key) const = 0;
  // Runs the compiler. A child that fails is a result and not an Error; its `err` then has the useful lines
  // of the compiler's log, errors first.
  virtual Result<ProcessResult> compile(const Job& job) const = 0;
};

// NVRTC in a child: the helper scankit-gpu loads the library. Implemented in toolchain.cc.
class NvrtcCompiler final : public DeviceCompiler {
 public:
  explicit NvrtcCompiler(Nvrtc nvrtc) : nvrtc_(std::move(nvrtc)) {}
  std::string kind() const override { return "nvrtc"; }
  std::string version() const override { return nvrtc_.version; }
  std::string sha256() const override { return nvrtc_.sha256; }
  std::string said() const override;
  const std::vector<std::string>& common_flags() const override;
  void add_inputs(Key& key) const override;
  Result<ProcessResult> compile(const Job& job) const override;

 private:
  Nvrtc nvrtc_;
};

}  // namespace scankit
