// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// Memory and disk for a build: asked before it starts, since a compiler that is killed halfway says nothing.
namespace scankit {

// Bytes of memory that this process may still take: the machine's available memory, and below each limit of
// its control groups what is not used. Page cache that the kernel can drop counts as free.
std::uint64_t free_memory(const Host& host, const Memory& memory);

// Room for one compiler, and for the files of a build in each of the folders; the Error says which is too
// little and what to do.
Result<void> check_resources(const Host& host, const Probed<Memory>& memory,
                             const std::vector<std::string>& folders);

// The deepest folder of the path that exists: what decides whether the rest can be made.
std::string existing_part(std::string path);

// Where the compilers write: $TMPDIR or /tmp.
std::string temporary_folder();

}  // namespace scankit
