// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Every compiled extension below the site directories of sys.path, or of a part of them (AuditScope),
// followed through the loader's rules: those that use torch in the process as it is after `import
// torch`, the others in that of the bare interpreter. `progress` hears how many of the files are done;
// it may be empty.
enum class AuditScope {
  Packages,  // what the packages that the user named hold
  Linked,    // what links torch or CUDA, in whatever package
  All
};
using AuditProgress = std::function<void(std::size_t done, std::size_t of)>;
Probed<Audit> probe_audit(const Host& host, const Snapshot& so_far, AuditScope scope,
                          const AuditProgress& progress);

}  // namespace scankit
