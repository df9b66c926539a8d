// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/explainer.h"

#include <fmt/core.h>

namespace scankit {
namespace {

// The failure as the interpreter would have printed it. The file name tells the rules whether torch
// itself was being imported, and so whose library is missing.
std::string as_traceback(const Observation& seen) {
  const std::string file = seen.module == "torch" ? "/torch/__init__.py" : "<string>";
  return fmt::format("Traceback (most recent call last):\n  File \"{}\", line 1, in <module>\n{}: {}\n", file,
                     seen.exception, english(seen.message));
}

}  // namespace

void read_observations(Snapshot& snapshot) {
  if (!snapshot.observations.present()) return;
  for (Observation& seen : snapshot.observations.value) {
    // "start" is the interpreter that could not start, which is not an import.
    if (seen.outcome != "error" || seen.variant == "start") continue;
    const Log log = explain_text(as_traceback(seen));
    if (log.hits.empty() || log.hits.front().role != "root") continue;
    const LogHit& hit = log.hits.front();
    seen.reading = hit.meaning;
    // A guess that other causes would explain as well does not become a finding. Without LD_LIBRARY_PATH,
    // that variable cannot be what brought another copy first.
    const auto path = snapshot.environment.find("LD_LIBRARY_PATH");
    const bool shadow =
        hit.cause == "ld_library_path_shadow" && (path == snapshot.environment.end() || path->second.empty());
    if (hit.sure != "possible" && !shadow) seen.reads_as = hit.cause;
  }
}

}  // namespace scankit
