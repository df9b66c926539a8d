// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// --module with a name that nothing here has and scankit does not know: a slip of the keyboard, most likely.
// Nothing where each name means something, or where the environment could not be read.
std::optional<Error> meaningless_module(const Snapshot& snapshot);

}  // namespace scankit
