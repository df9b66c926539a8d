// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/snapshot.h"

namespace scankit {

Extension::Extension() = default;
Extension::Extension(const Extension&) = default;
Extension::Extension(Extension&&) noexcept = default;
Extension& Extension::operator=(const Extension&) = default;
Extension& Extension::operator=(Extension&&) noexcept = default;
Extension::~Extension() = default;

Snapshot::Snapshot() = default;
Snapshot::Snapshot(const Snapshot&) = default;
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(const Snapshot&) = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

}  // namespace scankit
