// SPDX-License-Identifier: Apache-2.0
// `scankit build`: reads the facts that a build needs, builds, and writes the module and its manifest.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "builder/cli/commands.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/extensions/torch.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

// Only what a build needs. No extension is read, so a build from the cache takes milliseconds.
Snapshot facts_for_build(const Host& host, const BuildOptions& options) {
  Snapshot snapshot;
  snapshot.memory = probe_memory(host);
  snapshot.gpus = probe_gpus(host);
  snapshot.driver = probe_driver(host);
  snapshot.toolkits = probe_toolkits(host);
  // Device code needs no Python. One is looked for only because its torch may have brought an NVRTC.
  BrokenEnvironment broken;
  if (auto python = chosen_python(host, options.python, broken)) {
    snapshot.python = probe_python(host, *python);
    snapshot.distributions = probe_distributions(host, snapshot.python.value);
    snapshot.torch = probe_torch(host, snapshot.python.value, snapshot.distributions.value);
  } else {
    snapshot.python = Probed<Python>::failed(python.error().message);
    if (!broken.origin.empty()) snapshot.broken_environment = broken;
  }
  return snapshot;
}

void print_result(const BuiltModule& built, const std::string& path) {
  for (const std::string& note : built.notes) print_line(say("note: {}", note));
  const std::string made = say_n(built.images.size(), "{:.2f} MB, {}, {}; {} of {} image from the cache",
                                 "{:.2f} MB, {}, {}; {} of {} images from the cache",
                                 static_cast<double>(built.bytes.size()) / 1e6, names_of(built.targets, ", "),
                                 built.compiler, built.from_cache, built.images.size());
  std::printf("%s\n  %s\n", plain(path, false).c_str(), plain(made, false).c_str());
  if (!built.made_for.empty()) std::printf("  %s\n", plain(built.made_for, false).c_str());
}

void print_comparison(const std::string& name, const Explanation& other, const Explanation& here) {
  const auto lines = compare_explanations(name, other, here);
  const std::string headline = lines.empty() ? say("everything that this build depends on is the same as in "
                                                   "{}",
                                                   name)
                                             : say("this build differs from {}:", name);
  print_line(headline);
  for (const std::string& line : lines) std::printf("  %s\n", plain(line, false).c_str());
}

// The fields of a manifest, and what this run did. read_explanation() reads this output back.
void print_json(const BuiltModule& built, const std::string& path, const BuildOptions& options,
                const Explanation& other) {
  nlohmann::ordered_json json = {{"schema", 1}};
  json["module"] = "";  // here for its place; add_explanation() sets it
  json["file"] = path;
  json["size"] = built.bytes.size();
  json["sha256"] = sha256_hex(built.bytes);
  json["compiler"] = built.compiler;
  json["from_cache"] = built.from_cache;
  json["compiled"] = built.compiled;
  json["notes"] = built.notes;
  add_explanation(json, built.explanation);
  if (!options.explain_other.empty())
    json["differences"] = compare_explanations(options.explain_other, other, built.explanation);
  std::printf("%s", json_document(json).c_str());
}

// While it runs, Ctrl-C ends the program after saying what is left behind.
Result<BuiltModule> interruptible_build(const Host& host, const Snapshot& snapshot,
                                        const BuildRequest& request) {
  const IfInterrupted words(
      say("interrupted: no module was written. Compiled code is kept in the cache; run the same command "
          "again to continue"));
  return build_module(host, snapshot, request);
}

}  // namespace

// A file that begins with '{' is a snapshot; `read_machine` reads any other.
Result<void> build_for(const std::string& file, const MachineReader& read_machine, Snapshot& here,
                       TargetRequest& targets) {
  constexpr std::size_t kLimit = 256u << 20;
  SCANKIT_TRY(const std::string text, read_whole_file(file, kLimit));
  const auto start = text.find_first_not_of(" \t\r\n");
  const bool json = start == std::string::npos || text[start] == '{';
  const bool other = !json && read_machine != nullptr;
  auto there = other ? read_machine(text, file) : snapshot_from_json(text);
  if (!there && other) return there.error();
  if (!there)
    return Error{there.error().code, message("{} is not a snapshot: {}", file, there.error().message),
                 message("make one on that machine: scankit snapshot --out FILE")};
  if (!there->gpus.present() || there->gpus.value.empty())
    return Error{Errc::NotFound, message("{} lists no GPU", file),
                 message("choose the GPU that the module is for: --arch sm_90")};
  here.gpus = std::move(there->gpus);
  here.driver = std::move(there->driver);
  targets = {TargetRequest::Kind::Native, {}};
  return {};
}

// A trailing slash means a directory, even if it does not exist yet.
Result<std::string> output_path(const std::string& out, const std::string& file) {
  std::string path = path_normalize(path_join(current_directory(), out.empty() ? file : out));
  if (std::filesystem::is_directory(path) || out.ends_with('/')) path = path_join(path, file);
  SCANKIT_CHECK(make_directories(path_dirname(path)));
  return regular_output(path);
}

int run_build(const BuildOptions& options) {
  if (!options.show_manifest.empty()) return show_manifest(options.show_manifest);
  if (options.reproducible) return check_reproducible(options);
  const auto host = make_real_host();
  // An --out that cannot be written is reported before a minute of compiling and not after it.
  if (!options.out.empty() && !options.out.ends_with('/') && !std::filesystem::is_directory(options.out))
    if (const auto out = regular_output(options.out); !out)
      return report_error("build", out.error(), kExitUsage);
  const bool release = options.release || options.arch == "release";
  auto request = build_request(options.module, release ? "" : options.arch, options.compilation);
  if (!request) return report_error("build", request.error(), kExitUsage);
  if (auto known = check_request(options.compilation.toolchain); !known)
    return report_error("build", known.error(), kExitUsage);
  request->toolchain.asked = options.compilation.toolchain;
  request->toolchain.may_download = options.allow_download;
  request->toolchain.release = release;
  request->toolchain.progress = tell;
  const auto flavor = parse_flavor(options.flavor);
  if (!flavor) return report_error("build", flavor.error(), kExitUsage);
  request->flavor = *flavor;
  Explanation other;
  if (!options.explain_other.empty()) {
    auto read = read_explanation(options.explain_other);
    if (!read) return report_error("build", read.error(), kExitUsage);
    other = std::move(*read);
  }
  Snapshot snapshot = facts_for_build(*host, options);
  if (!options.for_machine.empty())
    if (auto known = build_for(options.for_machine, options.read_machine, snapshot, request->targets); !known)
      return report_error("build", known.error(), kExitUsage);
  if (!snapshot.python.present() && !options.python.empty())
    return report_error("build", {Errc::InvalidArgument, tr(snapshot.python.note), ""}, kExitUsage);
  if (const auto broken = snapshot.broken_environment)
    return report_error("build", error_of(*broken), kExitFindings);
  if (*flavor == Flavor::Torch) request->targets.cuda = snapshot.torch.value.cuda;
  if (options.list_toolchains) return list_toolchains(*host, snapshot, *request);
  if (options.explain && options.explain_other.empty() && !options.json)
    request->explain = [](const Explanation& inputs) {
      std::fputs(explanation_text(inputs).c_str(), stdout);
      std::fflush(stdout);  // before the work, also in a pipe
    };
  const auto built = interruptible_build(*host, snapshot, *request);
  if (!built) return report_error("build", built.error(), kExitBuildFailed);
  const auto out = output_path(options.out, built->file);
  if (!out) return report_error("build", out.error(), kExitBuildFailed);
  const std::string& path = *out;
  Result<void> written = write_module(*host, *built, path);
  if (written) written = write_output(path + ".json", built->manifest);
  if (!written) return report_error("build", written.error(), kExitBuildFailed);
  if (options.json) {
    print_json(*built, path, options, other);
    return kExitClean;
  }
  if (!options.explain_other.empty()) print_comparison(options.explain_other, other, built->explanation);
  print_result(*built, path);
  return kExitClean;
}

}  // namespace scankit
