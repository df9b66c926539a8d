// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "doctor/base/files.h"
#include "doctor/base/process.h"

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

}  // namespace scankit
