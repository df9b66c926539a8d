// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit {

// With what this user, with this PATH, can change the environment. Of the running system only.
Installers probe_installers(const Host& host, const Python& python);

// The part of pip's configuration that changes what a repair command does. installers.cc stores the answer,
// so that a printed command can set PIP_USER=0 before it.

// What makes `pip install` of this Python install for the user alone (`--user`): "$PIP_USER" or the path of a
// pip.conf; "" where nothing does. A venv refuses that. pip's own order: the variable, then [install] before
// [global], then the files from PIP_CONFIG_FILE, sys.prefix, the user and the machine.
std::string pip_user_setting(const Host& host, const Python& python);

}  // namespace scankit
