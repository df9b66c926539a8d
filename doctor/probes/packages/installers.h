// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/installers.h"

namespace scankit {

// With what this user, with this PATH, can change the environment. Of the running system only.
Installers probe_installers(const Host& host, const Python& python);

}  // namespace scankit
