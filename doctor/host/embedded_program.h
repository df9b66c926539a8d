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

// scankit-gpu (builder/helpers/gpu): the small dynamic program that loads the vendor's libraries, since the
// static scankit cannot. It is embedded in scankit and run from memory, as a child.

namespace scankit {

// A small dynamic program that scankit carries, for what a static one cannot do: run from memory, else from a
// temporary folder. Placed once a process.
class EmbeddedProgram {
 public:
  // `bytes` stay where they are.
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
  Descriptor memory_;  // what keeps it there
  std::unique_ptr<TemporaryDirectory> folder_;
};

inline constexpr int kHelperFailed = 1;  // its exit statuses: the library is there and said no
inline constexpr int kHelperAbsent = 3;  // the library is not here

// Runs `scankit-gpu ARGS`. An Error means that the helper could not be started (a file system without exec, a
// foreign loader): whatever it would have told is then Unknown.
Result<ProcessResult> run_gpu_helper(const std::vector<std::string>& args,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(20));

// One line of its output: KIND<TAB>key=value<TAB>...; "gpu" has index, name, pci, uuid, sm, memory; "driver"
// has version, cuda; "nvrtc" has version, archs.
struct HelperRecord {
  std::string kind;
  std::map<std::string, std::string> fields;
};
std::vector<HelperRecord> parse_helper_records(std::string_view output);

// The embedded program's bytes: part of the key of whatever it compiled.
std::string_view gpu_helper_program();

}  // namespace scankit
