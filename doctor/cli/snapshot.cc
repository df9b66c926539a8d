// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/snapshot.h"

#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/model/redact.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/report/escape.h"

namespace scankit {

// The message about an environment that cannot be used goes to standard error; the snapshot is
// written all the same.
int run_snapshot(const SnapshotOptions& options) {
  EnvironmentOptions wanted = options.environment;
  wanted.gpu_details = true;
  auto gathered = gather(wanted);
  if (!gathered) {
    report_error(gathered.error(), options.environment.redact);
    return kExitUsage;
  }
  Facts facts = *std::move(gathered);
  // The exit status is then that of a finding, as with doctor.
  if (const auto broken = facts.snapshot.broken_environment) {
    report_error(error_of(*broken), options.environment.redact);
    facts.status = kExitFindings;
  }
  const std::string text =
      snapshot_to_json(options.environment.redact ? redacted(facts.snapshot, own_names()) : facts.snapshot);
  if (options.out.empty() || options.out == "-") {
    std::cout << text;
    return facts.status;
  }
  if (const auto written = write_output(options.out, text); !written) {
    report_error(written.error());
    return exit_status_of(written.error());
  }
  std::cerr << "scankit: " << plain(say("wrote {}", options.out), false) << "\n";
  return facts.status;
}

}  // namespace scankit
