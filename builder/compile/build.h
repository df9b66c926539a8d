// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "builder/compile/compile.h"
#include "builder/module/bundled.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The whole build of one module, or the finished one that came with scankit, and what a build needs of the
// machine.
namespace scankit::compile {

// Everything that decides what build_module() makes and how; the commands fill it from their options.
struct BuildRequest {
  const module::BundledModule* module = nullptr;
  Flavor flavor = Flavor::Universal;
  module::TargetRequest targets;
  toolchain::ToolchainRequest toolchain;
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
  std::vector<module::Target> targets;
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

// Memory and disk for a build: asked before it starts, since a compiler that is killed halfway says nothing.

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

}  // namespace scankit::compile
