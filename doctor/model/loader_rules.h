// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/model/snapshot.h"

// What the loader of this Python's process takes, as far as the snapshot says it.
namespace scankit {

// "x86_64", of the interpreter and not of the kernel, which differs for a 32-bit or an emulated one.
std::string interpreter_machine(const Snapshot& snapshot);

// "glibc.rtld.execstack=2", a tunable of glibc: the process has an executable stack from its start.
inline constexpr const char* kExecutableStackTunable = "glibc.rtld.execstack=2";
// Whether a library that requests an executable stack is refused (glibc 2.41, NEWS: dlopen no longer makes the stack of a
// running process executable); nothing where the C library is not known.
std::optional<bool> refuses_executable_stacks(const Snapshot& snapshot);

}  // namespace scankit
