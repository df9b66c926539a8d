// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/snapshot.h"
#include "doctor/probes/imports/observed.h"

namespace scankit {

// Really loads each file of the audit that the static pass says would fail, in a child of its own, after
// torch and the file's own package: packages find libraries for their extensions in ways that no table of the
// file shows. What loads is no longer missing anything; a file that fails keeps what the static pass found.
// Nothing is tried that the request's deadline leaves no time for. Only where imports are allowed.
void try_suspects(Snapshot& snapshot, const ObserveRequest& request);

}  // namespace scankit
