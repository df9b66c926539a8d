// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "builder/compile/explain.h"
#include "builder/module/bundled.h"
#include "builder/toolchain/choose_toolchain.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Everything that decides what build_module() makes and how; the commands fill it from their options.
struct BuildRequest {
  const BundledModule* module = nullptr;
  Flavor flavor = Flavor::Universal;
  TargetRequest targets;
  ToolchainRequest toolchain;
  std::string cache_folder;
  std::uint64_t cache_size = kDefaultCacheSize;         // bytes; 0: no cache
  unsigned jobs = 0;                                    // 0: by processors and memory
  std::chrono::milliseconds timeout = kCompileTimeout;  // of one image's compiler
  std::function<void(const std::string&)> progress;
  std::function<void(const Explanation&)> explain;  // before anything is compiled; may be empty
};

// A finished module in memory. prebuilt_module() makes the same from one that came with scankit.
struct BuiltModule {
  std::string module;  // its name
  Flavor flavor = Flavor::Universal;
  std::string file;         // what Python wants it to be called
  std::string bytes;        // the finished module
  std::string manifest;     // JSON; the same text lies inside it
  Explanation explanation;  // what all of it depends on
  std::vector<std::string> notes;
  std::vector<Target> targets;
  std::string compiler;           // "NVRTC 13.0 (system toolkit /usr/local/cuda-13.0)"
  std::vector<BuiltCode> images;  // without their bytes
  std::size_t from_cache = 0, compiled = 0;
  std::string made_for;  // torch flavor: "torch 2.11.0, ...", for people
  // What the torch flavor promises beyond assert_module(), checked on the file at `path`; else empty.
  std::function<Result<void>(const Host&, const std::string& path)> also_proven;
};

// "universal", "torch"; "" for the first.
Result<Flavor> parse_flavor(const std::string& text);

// The whole chain: toolchain, device code, assembly. Writes nothing but the cache; the caller places the
// bytes with write_module(), which checks them where they are.
Result<BuiltModule> build_module(const Host& host, const Snapshot& snapshot, const BuildRequest& request);

// Writes `built` to `path` and proves it there; nothing stays at `path` that was not proven.
Result<void> write_module(const Host& host, const BuiltModule& built, const std::string& path);

}  // namespace scankit
