// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "builder/assemble.h"
#include "builder/commands.h"
#include "builder/install/distribution.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/probes/distributions.h"
#include "doctor/probes/python.h"
#include "doctor/probes/system.h"
#include "doctor/probes/torch.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

// Only what a build asks of a machine: no extension is read, so that a build from the cache is a matter of
// milliseconds.
Snapshot facts_for_build(const Host& host, const BuildOptions& options) {
  Snapshot snapshot;
  snapshot.memory = probe_memory(host);
  snapshot.gpus = probe_gpus(host);
  snapshot.toolkits = probe_toolkits(host);
  // Device code needs no Python: one is asked only for the NVRTC that its torch brought.
  if (auto python = chosen_python(host, options.python)) {
    snapshot.python = probe_python(host, *python);
    snapshot.distributions = probe_distributions(host, snapshot.python.value);
    snapshot.torch = probe_torch(host, snapshot.python.value, snapshot.distributions.value);
  } else {
    snapshot.python = Probed<Python>::failed(python.error().message);
  }
  return snapshot;
}

std::string output_path(const std::string& out, const std::string& file) {
  std::string path = path_normalize(path_join(current_directory(), out.empty() ? file : out));
  if (std::filesystem::is_directory(path) || out.ends_with('/')) path = path_join(path, file);
  return path;
}

int show_manifest(const std::string& path) {
  auto file = read_whole_file(path, 1u << 30);
  if (!file) return complain("build", file.error(), kExitUsage);
  const auto manifest = section_bytes(*file, ".scankit.manifest");
  if (!manifest)
    return complain("build",
                    {Errc::InvalidArgument, say("{} holds no manifest: {}", path, manifest.error().message),
                     say("--show-manifest reads a module that scankit built")},
                    kExitUsage);
  std::fputs(manifest->c_str(), stdout);
  return kExitClean;
}

void print_result(const BuiltModule& built, const std::string& path) {
  for (const std::string& note : built.notes)
    std::printf("%s\n", plain(say("note: {}", note), false).c_str());
  const std::string made = say_n(built.images.size(), "{:.2f} MB, {}, {}; {} of {} image from the cache",
                                 "{:.2f} MB, {}, {}; {} of {} images from the cache",
                                 static_cast<double>(built.bytes.size()) / 1e6, names_of(built.targets, ", "),
                                 built.compiler, built.from_cache, built.images.size());
  std::printf("%s\n  %s\n", plain(path, false).c_str(), plain(made, false).c_str());
}

// Puts the GPUs of another machine in the place of those that are here.
Result<void> build_for(const std::string& file, Snapshot& here, BuildRequest& request) {
  constexpr std::size_t kLimit = 256u << 20;
  SCANKIT_TRY(const std::string text, read_whole_file(file, kLimit));
  auto there = snapshot_from_json(text);
  if (!there)
    return Error{there.error().code, say("{} is no snapshot: {}", file, retold(there.error().message)),
                 say("make one on that machine: scankit snapshot --out FILE")};
  if (!there->gpus.present() || there->gpus.value.empty())
    return Error{Errc::NotFound, say("{} is of a machine without a GPU", file),
                 say("name the GPU that the module is for: --arch sm_90")};
  here.gpus = std::move(there->gpus);
  request.targets = {TargetRequest::Kind::Native, {}};
  return {};
}

}  // namespace

int run_build(const BuildOptions& options) {
  if (!options.show_manifest.empty()) return show_manifest(options.show_manifest);
  const auto host = make_real_host();
  auto request = build_request(options.module, options.arch, options.cache_dir, options.jobs);
  if (!request) return complain("build", request.error(), kExitUsage);
  if (auto known = check_wish(options.toolchain); !known) return complain("build", known.error(), kExitUsage);
  request->toolchain = {options.toolchain, options.allow_download, options.release, tell, {}};
  Snapshot snapshot = facts_for_build(*host, options);
  if (!options.for_machine.empty())
    if (auto known = build_for(options.for_machine, snapshot, *request); !known)
      return complain("build", known.error(), kExitUsage);
  if (!snapshot.python.present() && !options.python.empty())
    return complain("build", {Errc::InvalidArgument, snapshot.python.note, ""}, kExitUsage);
  if (options.list_toolchains) return list_toolchains(*host, snapshot, *request);
  const auto built = build_module(*host, snapshot, *request);
  if (!built) return complain("build", built.error(), kExitBuildFailed);
  if (options.explain) std::fputs(built->explanation.c_str(), stdout);
  const std::string path = output_path(options.out, module_file(built->module));
  Result<void> written = make_directories(path_dirname(path));
  if (written) written = write_module(*host, *built, path);
  if (written) written = write_file_atomically(path + ".json", built->manifest);
  if (!written) return complain("build", written.error(), kExitBuildFailed);
  print_result(*built, path);
  return kExitClean;
}

}  // namespace scankit
