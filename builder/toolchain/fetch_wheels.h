// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "builder/compile/cache.h"
#include "builder/installer/installer.h"
#include "builder/toolchain/wheel_toolchains.h"

// Compilers that came as wheels: <cache>/toolchains/ID, brought once, by the user's own installer.
namespace scankit {

// Where it lies if it is whole: RECORD of each wheel says what is pinned of it, every file has the hash that
// RECORD says, and only this user or root can have written there, for a compiler is code that runs. Hashed
// again where sizes or times have changed.
std::string fetched_folder(const Host& host, const Cache& cache, const WheelToolchain& toolchain);

// The way for machines with neither uv nor pip: unpacks the wheels into `folder`. Empty: there is none.
using WheelFetcher =
    std::function<Result<void>(const std::vector<WheelPin>& wheels, const std::string& folder)>;

struct FetchRequest {
  const WheelToolchain* toolchain = nullptr;
  Installer downloader;
  WheelFetcher otherwise;  // for a downloader of kind None
  std::function<void(const std::string&)> progress;
};
// What is run for it, to be shown before; `cache` only says where.
std::string shown_fetch(const Cache& cache, const FetchRequest& request);
// Fetches, checks and puts it in place at once: a build that is killed, or a second one, leaves nothing half.
Result<void> fetch_wheels(const Host& host, const Cache& cache, const FetchRequest& request);

}  // namespace scankit
