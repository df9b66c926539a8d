// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/library.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Fills everything that the file at copy.path says by itself.
// Returns it opened where it is a whole ELF library.
std::shared_ptr<const ElfLibrary> inspect_file(const Host& host, Extension& copy);

// A name that TORCH_LIBRARY's static initialiser calls: the file makes operators of torch as it is loaded.
bool registers_operators(std::string_view symbol);

// Every file on sys.path that is, or nearly is, one of the modules: in the order in which import meets them,
// read and resolved as after `import torch`. `torch_missing` gets "SONAME needed by FILE" for what torch's
// own closure lacks. No file at all is a present, empty answer. A file that vanishes or cannot be read
// meanwhile is a state of that file.
Probed<std::vector<Extension>> probe_extensions(const Host& host, const Snapshot& so_far,
                                                const std::vector<std::string>& modules,
                                                std::vector<std::string>& torch_missing,
                                                std::vector<BindingMismatch>* torch_mismatches = nullptr);

// One file by itself: everything that does not depend on an environment. `resolved` stays false.
Extension inspect_extension(const Host& host, const std::string& path);

}  // namespace scankit
