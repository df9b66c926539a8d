// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python_shim.h"

namespace scankit {

// The interpreter and its import path, from files: nothing is started. `requested` is an interpreter, or
// anything that find_interpreter() leads to one. Failed, with the reason, where it is not a CPython 3 that
// could start.
Probed<Python> probe_python(const Host& host, const std::string& requested);
// The same interpreter, and an Error where probe_python() would fail.
Result<Interpreter> find_usable_interpreter(const Host& host, const std::string& requested);

}  // namespace scankit
