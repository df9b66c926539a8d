// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string_view>

#include "doctor/elf/library.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Fills everything that the file at copy.path says by itself. Returns it opened where it is a whole ELF
// library.
std::shared_ptr<const ElfLibrary> inspect_file(const Host& host, Extension& copy);

// A name that TORCH_LIBRARY's static initialiser calls: the file makes operators of torch as it is loaded.
bool registers_operators(std::string_view symbol);

}  // namespace scankit
