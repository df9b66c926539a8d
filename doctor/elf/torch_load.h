// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/elf/process_image.h"

namespace scankit {

// What `import torch` makes the loader do, as far as it decides which libraries a later extension meets.
struct TorchLoadRequest {
  std::string location;                         // the package's folder
  std::string cuda_major;                       // "13"; empty for a CPU build
  std::vector<std::string> sys_path;            // in order
  std::vector<std::string> extension_suffixes;  // in order
};
struct TorchLoad {
  bool loaded = false;                  // torch/_C was found and mapped
  Message note;                         // why not
  std::vector<UnfoundLibrary> missing;  // what its closure needs and nothing provides
};
// Leaves in `process` whatever could be loaded.
TorchLoad load_torch(ProcessImage& process, const Host& host, const TorchLoadRequest& request);

// The libraries that torch/__init__.py loads by path before or after libtorch_global_deps: each release has
// its own list, so it is read from that release's file.
struct TorchPreloads {
  using Pattern = std::pair<std::string, std::string>;  // {"cublas", "libcublas.so.*[0-9]"}
  std::string condition;                                // only where a loaded file's path holds this text
  std::vector<Pattern> after, on_failure;
};
TorchPreloads parse_torch_preloads(std::string_view init_py);

}  // namespace scankit
