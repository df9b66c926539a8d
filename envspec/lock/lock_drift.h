// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"
#include "envspec/check/facts.h"
#include "envspec/lock/hash_cache.h"
#include "envspec/lock/lock.h"

// The questions that a lock asks of an environment, one Outcome each.
namespace scankit {

struct LockView {
  const std::string& file;  // as the user named it
  const EnvironmentLock& lock;
  const Subject& subject;
};

Outcome locked_python(const LockView& view);
Outcome locked_torch(const LockView& view);
Outcome locked_machine(const LockView& view);  // processor, C library, driver, GPUs
Outcome locked_packages(const LockView& view);
Outcome locked_files(const LockView& view, const Host& host, HashCache& cache);
// Of a stored snapshot, which holds no files: the build-ids of what it looked at.
Outcome locked_build_ids(const LockView& view);

Finding lock_finding(const LockView& view, Cause cause, std::string subject, std::string summary);
// "is here" where the fact is known, and differs; Unknown where it should be and is not.
bool fact_is_known(Outcome& outcome, ProbeState state, const std::string& why);
// What an installer brings along by itself: another version of it changes nothing that is computed.
bool is_installers_own(const std::string& distribution);

}  // namespace scankit
