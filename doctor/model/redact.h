// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/snapshot.h"

namespace scankit {

// The same facts without who they belong to: home folders become /home/user, serials of GPUs go. Paths stay
// distinct and keep their shape, so that a diagnosis of the redacted snapshot is the same.
Snapshot redacted(const Snapshot& snapshot);

}  // namespace scankit
