// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "builder/toolchain/fetch_wheels.h"

namespace scankit {

// Brings wheels where there is neither pip nor uv: from the index that the user's configuration names, by
// scankit-fetch. Only what has the pinned hash is unpacked. `cache_folder`: where a download that was cut
// waits for the next run; "": nowhere.
WheelFetcher wheel_fetcher(const std::string& cache_folder);

}  // namespace scankit
