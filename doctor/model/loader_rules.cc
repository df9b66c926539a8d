// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/loader_rules.h"

#include "doctor/base/version.h"

namespace scankit {

std::string interpreter_machine(const Snapshot& snapshot) {
  // The soabi ends in the machine and system: "cpython-311-x86_64-linux-gnu",
  // "pypy310-pp73-x86_64-linux-gnu" (PEP 3149).
  const std::string& soabi = snapshot.python.value.soabi;
  const auto system = soabi.find("-linux");
  if (system != std::string::npos) {
    const auto start = soabi.rfind('-', system - 1);
    if (start != std::string::npos) return soabi.substr(start + 1, system - start - 1);
  }
  return snapshot.os.value.machine;
}

std::optional<bool> refuses_executable_stacks(const Snapshot& snapshot) {
  if (!snapshot.libc.present()) return std::nullopt;
  const LibC& libc = snapshot.libc.value;
  const auto tunables = snapshot.environment.find("GLIBC_TUNABLES");
  const bool granted = tunables != snapshot.environment.end() &&
                       tunables->second.find(kExecutableStackTunable) != std::string::npos;
  return libc.kind == "glibc" && meets(libc.version, ">=2.41") && !granted;
}

}  // namespace scankit
