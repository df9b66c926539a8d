// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/explainer.h"

namespace scankit {
namespace {

// As the interpreter would have printed it. That torch was being imported tells whose library is missing.
std::string as_traceback(const Observation& seen) {
  const std::string file = seen.module == "torch" ? "/torch/__init__.py" : "<string>";
  return "Traceback (most recent call last):\n  File \"" + file + "\", line 1, in <module>\n" +
         seen.exception + ": " + seen.message + "\n";
}

}  // namespace

void read_observations(Snapshot& snapshot) {
  if (!snapshot.observations.present()) return;
  for (Observation& seen : snapshot.observations.value) {
    if (seen.outcome != "error" || seen.variant == "start") continue;
    const Log log = explain_text(as_traceback(seen));
    if (log.hits.empty() || log.hits.front().role != "root") continue;
    const LogHit& hit = log.hits.front();
    seen.reading = hit.meaning;
    // A guess that the same words could be of something else is no finding.
    // Without the variable it can shadow nothing: another copy came first in another way.
    const auto path = snapshot.environment.find("LD_LIBRARY_PATH");
    const bool shadow =
        hit.cause == "ld_library_path_shadow" && (path == snapshot.environment.end() || path->second.empty());
    if (hit.sure != "possible" && !shadow) seen.reads_as = hit.cause;
  }
}

}  // namespace scankit
