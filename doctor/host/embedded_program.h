// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/process.h"

// Small dynamic programs that scankit carries and runs as children, because a static program cannot load the
// host's libraries: scankit-gpu (builder/helpers/gpu) for NVML and NVRTC, and scankit-fetch
// (builder/helpers/fetch) for libcurl.

namespace scankit {

// One such program: run from memory, else from a temporary folder. Placed once, by the first run() of a
// process; run() may be called from several threads.
class EmbeddedProgram {
 public:
  // `bytes` is not copied: it is a constant of the executable.
  EmbeddedProgram(std::string name, std::string_view bytes) : name_(std::move(name)), bytes_(bytes) {}

  // `request.argv` are the arguments; the program comes before them. An Error means that it could not be
  // started: a file system without exec, a foreign loader.
  Result<ProcessResult> run(ProcessRequest request);

 private:
  bool place_in_memory();
  bool place_in_folder();

  std::string name_;
  std::string_view bytes_;
  std::once_flag once_;
  bool good_ = false;
  std::string path_;
  Descriptor memory_;  // closing it would remove the program
  std::unique_ptr<TemporaryDirectory> folder_;
};

inline constexpr int kHelperFailed = 1;  // exit status of a helper: the library is there and said no
inline constexpr int kHelperAbsent = 3;  // the library is not here

// Runs `scankit-gpu ARGS`. An Error means that the helper could not be started (a file system without exec, a
// foreign loader): whatever it would have told is then Unknown.
Result<ProcessResult> run_gpu_helper(const std::vector<std::string>& args,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(20));

// One line of its output: KIND<TAB>key=value<TAB>...; "gpu" has index, name, pci, uuid, sm, memory; "driver"
// has version, cuda; "details" has pci and keys of doctor/model/gpu_details.def; "nvrtc" has version, archs.
struct HelperRecord {
  std::string kind;
  std::map<std::string, std::string> fields;
};
std::vector<HelperRecord> parse_helper_records(std::string_view output);

// The embedded program's bytes: part of the cache key of what it compiled (builder/toolchain).
std::string_view gpu_helper_program();

}  // namespace scankit
