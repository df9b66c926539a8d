// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "builder/compile/cache.h"
#include "builder/installer/installer.h"
#include "builder/toolchain/toolchain.h"

// Compilers that came as wheels: <cache>/toolchains/ID, brought once, by the user's own installer.
namespace scankit {

// The directory of a fetched compiler, or "" if it is not complete. A compiler is code that runs, so all
// of this must hold: the RECORD of each wheel is the pinned one, every file has the hash that RECORD
// names, and only this user or root can have written there. Files are hashed again if a size, a time or an
// inode has changed.
std::string fetched_folder(const Host& host, const Cache& cache, const WheelToolchain& toolchain);

// The way for machines with neither uv nor pip: unpacks the wheels into `folder`. Empty: there is none.
using WheelFetcher =
    std::function<Result<void>(const std::vector<WheelPin>& wheels, const std::string& folder)>;

// What to fetch, and by what: `downloader`, or `otherwise` if its kind is None.
struct FetchRequest {
  const WheelToolchain* toolchain = nullptr;
  Installer downloader;
  WheelFetcher otherwise;  // for a downloader of kind None
  std::function<void(const std::string&)> progress;
};
// The command that brings it, for the plan. `cache` only gives the destination.
std::string shown_fetch(const Cache& cache, const FetchRequest& request);
// Fetches into a directory aside, checks it, and renames it into place, so that a fetch that is killed, or a
// second one at the same time, leaves nothing incomplete.
Result<void> fetch_wheels(const Host& host, const Cache& cache, const FetchRequest& request);

}  // namespace scankit
