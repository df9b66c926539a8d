// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "builder/module/bundled.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::toolchain {
namespace {

// The one nvcc that comes as wheels.
const WheelToolchain& nvcc_wheels() { return wheel_toolchain("nvcc-13.0.88"); }

// No name of a kind has a slash in it.
bool is_path(const std::string& asked) { return asked.find('/') != std::string::npos; }

// The hint for a machine without a compiler. `cuda`: the release that a torch flavor demands, "" for any.
std::string how_to_bring_one(const Snapshot& snapshot, const std::string& cuda = "") {
  const std::string python =
      pip_folder(installers_of(snapshot)) +
      (snapshot.python.value.executable.empty() ? "python" : snapshot.python.value.executable);
  const auto wanted = Version::parse(cuda);
  if (wanted && wanted->part(0) != 12)
    return say("install the NVRTC of torch's own CUDA (no compiler needed): {}",
               python + " -m pip install 'nvidia-cuda-nvrtc==" + wanted->major_minor() + ".*'");
  return say("let scankit download one with --allow-download (90 MB, no compiler needed), or install it: {}",
             python + " -m pip install nvidia-cuda-nvrtc-cu12==12.9.86");
}

Candidate of(Nvrtc nvrtc) { return {.kind = Candidate::Kind::Nvrtc, .nvrtc = std::move(nvrtc)}; }
Candidate of(Nvcc nvcc) { return {.kind = Candidate::Kind::Nvcc, .nvcc = std::move(nvcc)}; }

// The compiler that was fetched from the wheel, or else the wheel itself, which is still to be fetched.
Candidate wheel_candidate(const Host& host, const compile::Cache& cache, const WheelToolchain& wheel) {
  const std::string folder = fetched_folder(host, cache, wheel);
  if (!folder.empty()) {
    const std::string origin = say("wheel {} in scankit's cache", wheel.id);
    if (wheel.nvcc) return of(nvcc_at(host, folder + wheel.folder, origin));
    for (Nvrtc& nvrtc : nvrtc_at(host, folder + wheel.folder, origin)) return of(std::move(nvrtc));
  }
  return {.kind = Candidate::Kind::Wheel, .wheel = &wheel};
}

// Adds the NVRTC wheels: with `here` those that were fetched already, else those that were not.
void add_wheels(const Host& host, const compile::Cache& cache, bool here, std::vector<Candidate>& all) {
  for (const WheelToolchain& wheel : wheel_toolchains()) {
    if (wheel.nvcc || wheel.wheels.empty()) continue;
    Candidate candidate = wheel_candidate(host, cache, wheel);
    if ((candidate.kind != Candidate::Kind::Wheel) == here) all.push_back(std::move(candidate));
  }
}

// Every compiler at a path: an nvcc, a library, a toolkit's root, or a site-packages directory.
Result<std::vector<Candidate>> at_path(const Host& host, const std::string& asked) {
  const std::string path = path_normalize(path_join(current_directory(), asked));
  const std::string origin = say("selected with --toolchain");
  if (Nvcc nvcc = nvcc_at(host, path, origin); !nvcc.path.empty())
    return std::vector<Candidate>{of(std::move(nvcc))};
  std::vector<Candidate> all;
  std::vector<std::string> folders = toolkit_library_folders();
  folders.insert(folders.begin(), "");
  folders.insert(folders.end(), {"/nvidia/cu13/lib", "/nvidia/cuda_nvrtc/lib"});
  for (const std::string& below : folders)
    for (Nvrtc& nvrtc : nvrtc_at(host, path + below, origin)) all.push_back(of(std::move(nvrtc)));
  if (all.empty())
    return Error{Errc::InvalidArgument, message("--toolchain {}: neither nvcc nor NVRTC found there", path),
                 message("give bin/nvcc, a libnvrtc.so.N, or a directory that contains one")};
  return all;
}

// torch's own build of extensions has the same rule: the compiler's major version is that of
// torch.version.cuda. True if the request names no release.
bool is_of_cuda(const Candidate& candidate, const std::string& cuda) {
  const auto wanted = Version::parse(cuda), has = Version::parse(candidate.release());
  return !wanted || (has && has->part(0) == wanted->part(0));
}

// What the compiler would make of the request, whatever the driver. The compiler must be identified.
Result<module::TargetChoice> targets_by(const Candidate& candidate, const module::TargetRequest& request,
                                        const Snapshot& snapshot) {
  if (!is_of_cuda(candidate, request.cuda))
    return Error{Errc::Unsupported, message("this torch is built with CUDA {}", request.cuda), ""};
  return module::choose_targets(request, snapshot.gpus, candidate.archs());
}

Message lacking(const Candidate& candidate, const Error& error) {
  return message("{}: {}", candidate.title(), error.message);
}

// Cubins by number, then PTX, as choose_targets() sorts them.
void sort_toolchain_targets(Toolchain& toolchain) {
  std::vector<std::pair<module::Target, std::size_t>> all;
  for (std::size_t i = 0; i < toolchain.made_by.size(); ++i)
    all.emplace_back(toolchain.choice.targets[i], toolchain.made_by[i]);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.ptx, a.first.sm, a.first.specific) <
           std::tie(b.first.ptx, b.first.sm, b.first.specific);
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    std::tie(toolchain.choice.targets[i], toolchain.made_by[i]) = all[i];
}

// What several compilers can make together, each target by the first that can. For a list only: what "native"
// and "all" mean depends on the one compiler. Nothing if a target has no compiler.
std::optional<Toolchain> combine(const std::vector<Candidate>& candidates,
                                 const module::TargetRequest& request, bool may_download) {
  if (request.kind != module::TargetRequest::Kind::List) return std::nullopt;
  Toolchain toolchain;
  std::vector<std::size_t> used;
  for (const module::Target& target : request.list) {
    const auto maker = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) {
      const auto& archs = one.archs();
      return (may_download || one.kind != Candidate::Kind::Wheel) && is_of_cuda(one, request.cuda) &&
             std::find(archs.begin(), archs.end(), target.sm) != archs.end();
    });
    if (maker == candidates.end()) return std::nullopt;
    if (std::find(toolchain.choice.targets.begin(), toolchain.choice.targets.end(), target) !=
        toolchain.choice.targets.end())
      continue;
    const auto index = static_cast<std::size_t>(maker - candidates.begin());
    const auto known = std::find(used.begin(), used.end(), index);
    toolchain.made_by.push_back(static_cast<std::size_t>(known - used.begin()));
    if (known == used.end()) {
      used.push_back(index);
      toolchain.compilers.push_back(*maker);
    }
    toolchain.choice.targets.push_back(target);
  }
  sort_toolchain_targets(toolchain);
  return toolchain;
}

// One compiler makes all targets.
Toolchain alone(Candidate candidate, module::TargetChoice choice) {
  Toolchain toolchain;
  toolchain.made_by.assign(choice.targets.size(), 0);
  toolchain.choice = std::move(choice);
  toolchain.compilers.push_back(std::move(candidate));
  return toolchain;
}

FetchRequest fetch_request(const Host& host, const Snapshot& snapshot, const ToolchainRequest& wish,
                           const WheelToolchain* wheel) {
  return {wheel, installer::downloader_of(host, snapshot), wish.fetch, wish.progress};
}

// The toolchain of --release, by release_parts() of module/bundled.h.
Result<Toolchain> choose_release(const Host& host, const compile::Cache& cache) {
  Toolchain toolchain;
  for (const module::ReleasePart& part : module::release_parts()) {
    Candidate candidate = wheel_candidate(host, cache, wheel_toolchain(part.toolchain));
    const bool fetched = candidate.kind != Candidate::Kind::Wheel;
    if (fetched) SCANKIT_CHECK(identify(host, cache, candidate.nvrtc));
    if (!fetched && candidate.wheel->wheels.empty())
      return Error{Errc::Unsupported, message("{} does not exist for {}", part.toolchain, kMachine),
                   message("name the architectures that you need, such as --arch sm_90")};
    for (const module::Target& target : part.targets) {
      toolchain.choice.targets.push_back(target);
      toolchain.made_by.push_back(toolchain.compilers.size());
    }
    toolchain.compilers.push_back(std::move(candidate));
  }
  sort_toolchain_targets(toolchain);
  return toolchain;
}

// The same, checked against the driver. It must read what is made for the GPUs here; a list may be meant for
// another machine, so it is not checked.
Result<module::TargetChoice> targets_with(const Snapshot& snapshot, const module::TargetRequest& request,
                                          const Candidate& candidate) {
  SCANKIT_TRY(module::TargetChoice choice, targets_by(candidate, request, snapshot));
  if (request.kind != module::TargetRequest::Kind::Default &&
      request.kind != module::TargetRequest::Kind::Native)
    return choice;
  if (!snapshot.gpus.present() || snapshot.gpus.value.empty()) return choice;
  const DriverFit fit = driver_fit(snapshot.driver, candidate.release(), choice.targets);
  if (fit.refused)
    return Error{Errc::Unsupported, fit.why, message("update the NVIDIA driver, or use CUDA 12")};
  if (!fit.why.empty()) {
    choice.too_old = true;
    choice.notes.insert(choice.notes.begin(), fit.why);
  }
  return choice;
}

// Whether what is missing can be fetched. The user is about to agree to a plan, which must not promise a
// download that is impossible.
Result<void> check_way(const Host& host, const Snapshot& snapshot, const ToolchainRequest& wish,
                       const Toolchain& toolchain) {
  if (toolchain.missing().empty() || wish.fetch) return {};
  const installer::Installer downloader = installer::downloader_of(host, snapshot);
  if (downloader.kind != installer::Installer::Kind::None) return {};
  return Error{
      Errc::NotFound,
      message("{} cannot be downloaded: {}", toolchain.missing().front()->requirements(), downloader.why),
      downloader.instead};
}

// The Error that offers a download. `lacking_here`: why no compiler here fits, or "" if none was looked for.
Error needs_download(const Toolchain& toolchain, const Message& lacking_here) {
  const WheelToolchain& wheel = *toolchain.missing().front();
  const Message fix = message("{} builds it ({} MB): download it with --allow-download", wheel.requirements(),
                              wheel.download() / 1000000);
  if (lacking_here.empty())
    return {Errc::NotFound,
            message("{} is not in the cache, and scankit downloads nothing without "
                    "--allow-download",
                    wheel.id),
            fix};
  return {Errc::NotFound, message("no suitable compiler found: {}", lacking_here), fix};
}

}  // namespace

Result<void> check_request(const std::string& asked) {
  for (const char* known : {"", "auto", "nvrtc", "nvrtc-wheel", "nvcc", "nvcc-wheel"})
    if (asked == known) return {};
  if (is_path(asked)) return {};
  return Error{Errc::InvalidArgument, message("--toolchain {}: unknown kind of compiler", asked),
               message("use auto, nvrtc, nvrtc-wheel, nvcc, nvcc-wheel, or a path")};
}

std::string Candidate::title() const {
  switch (kind) {
    case Kind::Nvrtc:
      return nvrtc.version.empty() ? say("NVRTC of unknown version: {}", nvrtc.path)
                                   : say("NVRTC {}: {}", nvrtc.version, nvrtc.path);
    case Kind::Nvcc:
      return nvcc.version.empty() ? say("nvcc of unknown version: {}", nvcc.path)
                                  : say("nvcc {}: {}", nvcc.version, nvcc.path);
    case Kind::Wheel:
      break;
  }
  return wheel->nvcc ? say("nvcc {}: not installed, available as {}", wheel->version, wheel->requirements())
                     : say("NVRTC {}: not installed, available as {}", wheel->version, wheel->requirements());
}

std::string Candidate::release() const {
  return kind == Kind::Nvrtc ? nvrtc.version : kind == Kind::Nvcc ? nvcc.version : wheel->version;
}

const std::vector<unsigned>& Candidate::archs() const {
  return kind == Kind::Nvrtc ? nvrtc.archs : kind == Kind::Nvcc ? nvcc.archs : wheel->archs;
}

Result<std::vector<Candidate>> find_candidates(const Host& host, const Snapshot& snapshot,
                                               const ToolchainRequest& wish, const compile::Cache& cache) {
  SCANKIT_CHECK(check_request(wish.asked));
  if (is_path(wish.asked)) return at_path(host, wish.asked);
  const bool any = wish.asked.empty() || wish.asked == "auto";
  std::vector<Candidate> all;
  if (any || wish.asked == "nvrtc")
    for (Nvrtc& nvrtc : find_nvrtc(host, snapshot)) all.push_back(of(std::move(nvrtc)));
  if (any || wish.asked == "nvrtc" || wish.asked == "nvrtc-wheel") add_wheels(host, cache, true, all);
  if (any || wish.asked == "nvcc")
    for (Nvcc& nvcc : find_nvcc(host, snapshot)) all.push_back(of(std::move(nvcc)));
  // nvcc from wheels comes last of all that is here, and last of all that could be fetched: it needs a host
  // compiler, and NVRTC does not.
  Candidate scratch = wheel_candidate(host, cache, nvcc_wheels());
  const bool scratch_here = scratch.kind == Candidate::Kind::Nvcc;
  const bool to_be_had = scratch_here || !nvcc_wheels().wheels.empty();
  if (((any || wish.asked == "nvcc") && scratch_here) || (wish.asked == "nvcc-wheel" && to_be_had))
    all.push_back(scratch);
  if (any || wish.asked == "nvrtc-wheel") add_wheels(host, cache, false, all);
  if (any && !scratch_here && to_be_had) all.push_back(std::move(scratch));
  return all;
}

Result<void> identify(const Host& host, const compile::Cache& cache, Candidate& candidate) {
  if (candidate.kind == Candidate::Kind::Nvrtc) return identify(host, cache, candidate.nvrtc);
  if (candidate.kind == Candidate::Kind::Nvcc) return identify_nvcc(host, cache, candidate.nvcc);
  return {};
}

Result<module::TargetChoice> judge(const Host& host, const Snapshot& snapshot,
                                   const module::TargetRequest& request, const compile::Cache& cache,
                                   Candidate& candidate) {
  SCANKIT_CHECK(identify(host, cache, candidate));
  return targets_with(snapshot, request, candidate);
}

std::vector<const WheelToolchain*> Toolchain::missing() const {
  std::vector<const WheelToolchain*> wheels;
  for (const Candidate& candidate : compilers)
    if (candidate.kind == Candidate::Kind::Wheel) wheels.push_back(candidate.wheel);
  return wheels;
}

std::string Toolchain::said() const {
  std::string text;
  for (const Candidate& candidate : compilers)
    text += (text.empty() ? "" : ", ") +
            (candidate.kind == Candidate::Kind::Wheel ? candidate.title() : make_compiler(candidate)->said());
  return text;
}

Error no_toolchain(const Snapshot& snapshot) {
  return {
      Errc::NotFound,
      message("NVRTC (libnvrtc.so.12 or .13) not found: searched the environment's nvidia wheels, torch's "
              "directory, and the CUDA toolkits in /usr/local, CUDA_HOME and PATH"),
      how_to_bring_one(snapshot)};
}

Result<Toolchain> choose_toolchain(const Host& host, const Snapshot& snapshot,
                                   const module::TargetRequest& request, const compile::Cache& cache,
                                   const ToolchainRequest& wish) {
  const bool consent = wish.may_download || wish.asked.ends_with("-wheel");
  if (wish.release) {
    SCANKIT_TRY(Toolchain toolchain, choose_release(host, cache));
    if (!toolchain.missing().empty() && !consent) return needs_download(toolchain, "");
    SCANKIT_CHECK(check_way(host, snapshot, wish, toolchain));
    return toolchain;
  }
  if (request.kind == module::TargetRequest::Kind::None) {
    Toolchain nothing;  // no device code, no compiler
    SCANKIT_TRY(nothing.choice, module::choose_targets(request, snapshot.gpus, {}));
    return nothing;
  }
  SCANKIT_TRY(std::vector<Candidate> candidates, find_candidates(host, snapshot, wish, cache));
  // The first compiler here that fits without reservation wins at once. `second_best` is the first
  // one here that fits with a reservation (TargetChoice::too_old). `to_fetch` is the first wheel that
  // fits without reservation.
  std::optional<Toolchain> second_best, to_fetch;
  Message lacks;
  Error last;
  bool any_here = false;
  std::vector<Candidate> usable;
  for (Candidate& candidate : candidates) {
    const bool here = candidate.kind != Candidate::Kind::Wheel;
    any_here = any_here || here;
    const auto ready = identify(host, cache, candidate);
    if (ready) usable.push_back(candidate);
    auto choice =
        ready ? targets_with(snapshot, request, candidate) : Result<module::TargetChoice>(ready.error());
    if (choice && here && !choice->too_old) return alone(std::move(candidate), std::move(*choice));
    // The request itself cannot be met: no GPU for "native", a GPU whose architecture is no number.
    if (!choice && here && ready && choice.error().code != Errc::Unsupported) return choice.error();
    if (choice && !choice->too_old && !to_fetch) to_fetch = alone(candidate, *choice);
    if (choice && here && !second_best) second_best = alone(candidate, *choice);
    if (choice || !here) continue;
    last = choice.error();
    lacks = clauses_of({lacks, lacking(candidate, last)});
  }
  // Together, of what is here; then with what can be fetched.
  if (auto together = combine(usable, request, false)) return *together;
  if (consent && !to_fetch) to_fetch = combine(usable, request, true);
  if (consent && to_fetch) {
    const auto way = check_way(host, snapshot, wish, *to_fetch);
    if (way) return *to_fetch;
    if (!second_best) return way.error();
  }
  if (second_best) return *second_best;
  if (to_fetch && any_here) return needs_download(*to_fetch, lacks);
  if (!any_here) {
    Error none = no_toolchain(snapshot);
    if (!request.cuda.empty()) none.hint = how_to_bring_one(snapshot, request.cuda);
    return none;
  }
  return Error{last.code, message("no suitable compiler found: {}", lacks),
               last.hint.empty() ? how_to_bring_one(snapshot, request.cuda) : last.hint};
}

std::vector<std::string> shown_fetches(const Host& host, const Snapshot& snapshot,
                                       const compile::Cache& cache, const Toolchain& toolchain) {
  std::vector<std::string> lines;
  for (const WheelToolchain* wheel : toolchain.missing())
    lines.push_back(say("{} MB: {}", wheel->download() / 1000000,
                        shown_fetch(cache, fetch_request(host, snapshot, {}, wheel))));
  return lines;
}

Result<void> complete_toolchain(const Host& host, const Snapshot& snapshot,
                                const module::TargetRequest& request, const compile::Cache& cache,
                                const ToolchainRequest& wish, Toolchain& toolchain) {
  const auto missing = toolchain.missing();
  if (missing.empty()) return {};
  for (const WheelToolchain* wheel : missing)
    SCANKIT_CHECK(fetch_wheels(host, cache, fetch_request(host, snapshot, wish, wheel)));
  // Until now the architectures were those of the table of wheels; the fetched compiler is asked for its own.
  SCANKIT_TRY(toolchain, choose_toolchain(host, snapshot, request, cache, wish));
  if (toolchain.missing().empty()) return {};
  return Error{Errc::Io, message("{} was downloaded but cannot be found", missing.front()->id), ""};
}

// The candidate must be identified and no longer a wheel.
std::unique_ptr<DeviceCompiler> make_compiler(const Candidate& candidate) {
  if (candidate.kind == Candidate::Kind::Nvcc) return std::make_unique<NvccCompiler>(candidate.nvcc);
  return std::make_unique<NvrtcCompiler>(candidate.nvrtc);
}

}  // namespace scankit::toolchain
