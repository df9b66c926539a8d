// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/finding.h"

// "Is it me?": who has to change something, which is what a user asks first.
namespace scankit {

// "Of", since Driver and Environment are names of facts already.
enum class AtFault { OfEnvironment, OfModule, OfDriver, OfMachine, OfCode, OfBuild, OfInstallation };
AtFault at_fault(Cause cause);

}  // namespace scankit
