// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/snapshot.h"

namespace scankit {

// What the messages of the imports that failed say by themselves, by the rules that read logs. A check takes
// it where the files explain nothing: in a library that no table knows, or behind a loader that could not be
// followed.
void read_observations(Snapshot& snapshot);

}  // namespace scankit
