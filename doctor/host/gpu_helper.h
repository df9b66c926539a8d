// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/process.h"

// scankit-gpu (builder/helpers/gpu): the small dynamic program that loads the vendor's libraries, since the
// static scankit cannot. It is embedded in scankit and run from memory, as a child.
namespace scankit {

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
