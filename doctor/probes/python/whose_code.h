// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// A file or folder of another user, whose code root would run (ARCHITECTURE.md, decision 17).
struct ForeignCode {
  std::string path;
  unsigned uid = 0;
};

// Where this process is root and the file is not root's; nothing for another user, whom the kernel keeps from
// doing more than he may.
std::optional<ForeignCode> foreign_to_root(const Host& host, const std::string& path);

// The first that this interpreter runs as it starts, or has on its path: the executable, prefixes, folders of
// sys.path, .pth files, sitecustomize.py.
std::optional<ForeignCode> foreign_code(const Host& host, const Python& python);

// And what imports of torch and of the modules under diagnosis would run.
std::optional<ForeignCode> foreign_code(const Host& host, const Snapshot& snapshot);

}  // namespace scankit
