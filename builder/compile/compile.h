// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/compile/fatbin.h"
#include "builder/toolchain/device_compiler.h"
#include "doctor/base/process.h"
#include "doctor/base/result.h"

// What became of a compiler that made no image, in words that name unit, target and what to do.

namespace scankit {

inline constexpr std::chrono::seconds kCompileTimeout{600};  // of one image; ours take 4 s on an idle core

struct CompileRequest {
  std::string source_name = "source.cu";  // stands in the compiler's messages
  std::string_view source;
  std::vector<Unit> units;
  std::vector<Target> targets;
  const DeviceCompiler* compiler = nullptr;
  // Of `targets`, in their order, where they are not all made by `compiler`.
  std::vector<const DeviceCompiler*> compilers;
  const Cache* cache = nullptr;
  unsigned jobs = 1;
  std::chrono::milliseconds timeout = kCompileTimeout;
  // Called once, before the first compiler is started: where something is missing that all of them need.
  std::function<Result<void>()> before;
  // Called with a line that stays: why something is compiled. May be empty.
  std::function<void(const std::string&)> progress;
};

const DeviceCompiler& compiler_for(const CompileRequest& request, const Target& target);

// What one image depends on. Made once for a request, since the source is hashed, whole and file by file.
class KeyMaker {
 public:
  explicit KeyMaker(const CompileRequest& request);
  Key key(const Unit& unit, const Target& target) const;
  // Names what an image is for, whatever it depends on (Cache::store).
  std::string slot(const Unit& unit, const Target& target) const;

 private:
  const CompileRequest& request_;
  Key common_;
};

// Every unit for every target, from the cache or by children that run side by side. The first failure stops
// the rest; its Error holds the compiler's useful lines, the first one in the message.
Result<std::vector<BuiltCode>> compile_units(const CompileRequest& request);

// As many children as processors that we may use, and no more than memory allows.
unsigned compile_jobs(const Probed<Memory>& memory);

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
