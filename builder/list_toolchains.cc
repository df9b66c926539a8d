// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "builder/cache.h"
#include "builder/commands.h"
#include "builder/toolchain.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/probes/build_text.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

void print(const std::string& line) { std::printf("%s\n", plain(line, false).c_str()); }

std::string names(const std::vector<unsigned>& archs) {
  std::string text;
  for (const unsigned sm : archs) text += (text.empty() ? "sm_" : " sm_") + std::to_string(sm);
  return text;
}

// Returns whether it is the one that a build takes: the first that can make what is asked.
bool print_nvrtc(const Host& host, const Snapshot& snapshot, const BuildRequest& request, bool taken,
                 Nvrtc nvrtc) {
  const auto choice = judge_nvrtc(host, snapshot, request.targets, Cache(request.cache_folder), nvrtc);
  print(nvrtc.version.empty() ? say("NVRTC of unknown version: {}", nvrtc.path)
                              : say("NVRTC {}: {}", nvrtc.version, nvrtc.path));
  print("    " + say("from: {}", nvrtc.origin));
  if (!nvrtc.archs.empty()) print("    " + say("makes: {}", names(nvrtc.archs)));
  print("    " + say("host compiler: none needed"));
  if (!choice) {
    print("    " + say("not chosen: {}", retold(choice.error().message)));
    return false;
  }
  print("    " + (taken ? say("not chosen: one above it is taken, and this one would do as well")
                        : say("chosen: makes {}", names_of(choice->targets, " "))));
  return true;
}

// The bounds of nvcc stand in a header that each compilation includes.
std::string host_compilers(const Host& host, const Toolkit& toolkit) {
  constexpr std::size_t kLimit = 1u << 20;
  for (const char* below :
       {"/include/crt/host_config.h", "/targets/x86_64-linux/include/crt/host_config.h"}) {
    const auto text = host.read_file(toolkit.root + below, kLimit);
    if (!text) continue;
    BuildTools tools;
    read_limits(*text, tools);
    if (tools.gcc_max != 0 && tools.clang_max != 0)
      return say("gcc up to {}, clang {} to {}", tools.gcc_max, tools.clang_min, tools.clang_max);
    if (tools.gcc_max != 0) return say("gcc up to {}", tools.gcc_max);
  }
  return say("not known: {} has no crt/host_config.h that says it", toolkit.root);
}

void print_nvcc(const Host& host, const Toolkit& toolkit) {
  print(say("nvcc {}: {}", toolkit.version.empty() ? std::string("?") : toolkit.version, toolkit.nvcc));
  print("    " + say("from: {}", say("toolkit {}", toolkit.root)));
  print("    " + say("host compiler: {}", host_compilers(host, toolkit)));
  print("    " + say("not chosen: NVRTC makes the same device code without a host compiler"));
}

}  // namespace

int list_toolchains(const Host& host, const Snapshot& snapshot, const BuildRequest& request) {
  bool taken = false;
  const auto found = find_nvrtc(host, snapshot);
  for (const Nvrtc& nvrtc : found) taken = print_nvrtc(host, snapshot, request, taken, nvrtc) || taken;
  for (const Toolkit& toolkit : snapshot.toolkits.value)
    if (!toolkit.nvcc.empty()) print_nvcc(host, toolkit);
  if (taken) return kExitClean;
  if (found.empty()) return complain("build", no_nvrtc(snapshot), kExitBuildFailed);
  return complain("build",
                  {Errc::Unsupported, say("none of these can make what is asked"), no_nvrtc(snapshot).hint},
                  kExitBuildFailed);
}

}  // namespace scankit
