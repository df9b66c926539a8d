// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "doctor/elf/process_image.h"
#include "doctor/model/snapshot.h"

// What a missing name or library is, and what there is instead.
namespace scankit {

// How many names like a missing one are looked through, and how many are told.
inline constexpr std::size_t kCandidateLimit = 4096, kNearLimit = 5;

// Sets demangled, owner, exported_by_torch, flipped_exported_by and near of each.
void explain_missing_symbols(const Extension& copy,
                             const std::vector<std::shared_ptr<const ElfLibrary>>& torch,
                             std::vector<MissingSymbol>& missing);

// Sets found_elsewhere and same_library_other_version.
void look_elsewhere(const Host& host, const Snapshot& so_far, const SearchContext& context,
                    MissingLibrary& missing);

}  // namespace scankit
