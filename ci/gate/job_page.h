// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/cli/diagnosis.h"

namespace scankit {

// What a CI server shows beside the log: on GitHub the Markdown on the job's page ($GITHUB_STEP_SUMMARY) and,
// where `to_stdout`, annotations as workflow commands. Nothing elsewhere. Returns the exit status that it
// comes to.
int tell_job_page(const Diagnosis& diagnosis, const SinkOptions& sink, bool to_stdout);

}  // namespace scankit
