// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/observed_files.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/imports/observed_child.h"

namespace scankit {
namespace {

constexpr std::size_t kMostTried =
    16;  // each imports torch anew; an environment broken as a whole has hundreds

bool is_suspect(const AuditedFile& file) {
  const bool lacks =
      !file.missing_libraries.empty() || !file.missing_symbols.empty() || !file.unmet_versions.empty();
  return file.file_state == "elf" && file.resolved && file.not_for_this_python.empty() && lacks;
}

// The package whose import prepares the file's libraries: the first folder below the site folder; "" for a
// file that lies in the site folder itself.
std::string package_of(const Snapshot& snapshot, const std::string& path) {
  for (const std::string& folder : snapshot.audit.value.folders) {
    if (!path.starts_with(folder + "/")) continue;
    const std::string rest = path.substr(folder.size() + 1);
    const auto slash = rest.find('/');
    if (slash == std::string::npos) return "";
    const std::string name = rest.substr(0, slash);
    const bool is_name = name.find_first_of(".-") == std::string::npos;
    return is_name ? name : "";
  }
  return "";
}

std::chrono::milliseconds time_for(const ObserveRequest& request) {
  using std::chrono::milliseconds;
  if (!request.deadline) return request.timeout;
  const auto left =
      std::chrono::duration_cast<milliseconds>(*request.deadline - std::chrono::steady_clock::now());
  return std::min(left, request.timeout);
}

bool loads(const Snapshot& snapshot, const AuditedFile& file, std::chrono::milliseconds timeout) {
  std::vector<std::string> imports;
  if (file.uses_torch) imports.emplace_back("?torch");
  if (const std::string package = package_of(snapshot, file.path); !package.empty())
    imports.push_back("?" + package);
  imports.push_back(file.path);
  const ChildAnswer answer = import_in_child(snapshot.python.value.requested, imports, timeout);
  return std::ranges::any_of(answer.imports, [&](const Observation& seen) {
    return seen.module == file.path && seen.outcome == "ok";
  });
}

}  // namespace

void try_suspects(Snapshot& snapshot, const ObserveRequest& request) {
  if (!snapshot.audit.present()) return;
  std::size_t tried = 0;
  for (AuditedFile& file : snapshot.audit.value.files) {
    if (!is_suspect(file)) continue;
    const auto timeout = time_for(request);
    if (timeout <= std::chrono::milliseconds::zero() || tried == kMostTried) return;
    ++tried;
    if (!loads(snapshot, file, timeout)) continue;
    file.missing_libraries.clear();
    file.missing_symbols.clear();
    file.unmet_versions.clear();
    file.settled_by.clear();
    file.resolution_note = say("it was seen to load");
  }
}

}  // namespace scankit
