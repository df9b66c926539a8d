// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/target.h"

#include <algorithm>
#include <cctype>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::probes {

void OverlayHost::overlay(const std::string& at, const std::string& folder) {
  overlays_.push_back({at, make_real_host(folder)});
}

// Lexical ".." is right here: what is overlaid has no links among its folders, and a path that leaves the
// overlay means the system's own.
OverlayHost::Place OverlayHost::find(const std::string& path) const {
  if (overlays_.empty()) return {base_.get(), path, ""};
  const std::string plain = path_normalize(path);
  for (const Overlay& overlay : overlays_) {
    if (plain != overlay.at && !plain.starts_with(overlay.at + "/")) continue;
    const std::string rest = plain.substr(overlay.at.size());
    if (rest.empty()) return {overlay.host.get(), "/", overlay.at};
    if (below_.empty() || overlay.host->lstat(rest)) return {overlay.host.get(), rest, overlay.at};
    return {base_.get(), below_ + rest, ""};
  }
  return {base_.get(), path, ""};
}

Result<std::string> OverlayHost::read_file(const std::string& path, std::size_t limit) const {
  const Place place = find(path);
  return place.host->read_file(place.path, limit);
}
Result<std::unique_ptr<ByteSource>> OverlayHost::open(const std::string& path) const {
  const Place place = find(path);
  return place.host->open(place.path);
}
Result<std::vector<DirEntry>> OverlayHost::list(const std::string& path) const {
  const Place place = find(path);
  return place.host->list(place.path);
}
Result<FileInfo> OverlayHost::stat(const std::string& path) const {
  const Place place = find(path);
  return place.host->stat(place.path);
}
Result<FileInfo> OverlayHost::lstat(const std::string& path) const {
  const Place place = find(path);
  return place.host->lstat(place.path);
}
Result<std::string> OverlayHost::readlink(const std::string& path) const {
  const Place place = find(path);
  return place.host->readlink(place.path);
}
// The overlay's host knows only its own paths, so `at` is put back in front.
Result<std::string> OverlayHost::realpath(const std::string& path) const {
  const Place place = find(path);
  auto real = place.host->realpath(place.path);
  if (!real || place.at.empty()) return real;
  return *real == "/" ? place.at : place.at + *real;
}

namespace {

constexpr std::string_view kPrefix = "sm_";

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_driver_soname(const std::string& soname) { return soname.starts_with("libcuda.so"); }

// The driver API's names: cuInit, cuLaunchKernel. The runtime's (cudaMalloc) and the libraries'
// (cublasCreate) go on in lower case.
bool is_driver_name(const MissingSymbol& symbol) {
  return symbol.owner == "cuda" && symbol.name.size() > 2 && symbol.name.starts_with("cu") &&
         std::isupper(static_cast<unsigned char>(symbol.name[2])) != 0;
}

// A machine with a driver has libcuda.so.1: what was missing here is no fault there. Which of the driver's
// names that release exports stays open, so the note says it.
void grant_libcuda(Extension& file) {
  const auto gone = std::erase_if(
      file.missing_libraries, [](const MissingLibrary& library) { return is_driver_soname(library.soname); });
  if (gone == 0) return;
  const auto names = std::erase_if(file.missing_symbols, is_driver_name);
  file.provided += static_cast<unsigned>(names);
  file.resolution_note = clauses_of(
      {file.resolution_note, message("libcuda.so.1 is assumed to come with the described driver")});
}

// An import that failed here for want of the driver says nothing about a machine that has one.
void discard_driver_failures(Snapshot& snapshot) {
  for (Observation& seen : snapshot.observations.value) {
    if (seen.outcome != "error" || seen.message.english().find("libcuda.so") == std::string::npos) continue;
    seen.why_not_run =
        message("failed on this machine, which does not have the target's driver: {}", seen.message);
    seen.outcome = "not-run";
    seen.exception.clear();
    seen.message = {};
  }
}

void describe_gpus(const std::vector<std::string>& names, Snapshot& snapshot) {
  snapshot.environment.erase("CUDA_VISIBLE_DEVICES");  // it chooses among the GPUs of this machine
  std::vector<Gpu> gpus;
  for (const std::string& name : names) {
    if (name == "none") continue;
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus.size());
    gpu.name = "described";
    gpu.sm = name.substr(kPrefix.size());
    gpu.sm_source = "described";
    gpus.push_back(std::move(gpu));
    snapshot.described.push_back(message("GPU {}", name));
  }
  if (gpus.empty()) {
    snapshot.gpus = Probed<std::vector<Gpu>>::absent(message("the target is described without a GPU"));
    snapshot.described.push_back(message("no GPU"));
  } else {
    snapshot.gpus = Probed<std::vector<Gpu>>::of(std::move(gpus));
  }
}

void describe_driver(const std::string& version, Snapshot& snapshot) {
  Driver driver;
  driver.version = version;
  driver.source = "described";
  snapshot.driver = Probed<Driver>::of(std::move(driver));
  snapshot.described.push_back(message("driver {}", version));
  for (Extension& file : snapshot.extensions.value) grant_libcuda(file);
  std::erase_if(snapshot.torch.value.missing_libraries,
                [](const TorchNeed& need) { return is_driver_soname(need.soname); });
  discard_driver_failures(snapshot);
}

}  // namespace

// Compute capabilities run from 5.0 in what any torch of today's installers still reads; two or three digits
// leave room for chips to come. "sm_90a" names a kind of code, not a chip.
std::string gpu_name_problem(const std::string& name) {
  if (name == "none") return "";
  const std::string_view number = std::string_view(name).substr(std::min(name.size(), kPrefix.size()));
  if (name.starts_with(kPrefix) && all_digits(number) && number.size() >= 2 && number.size() <= 3 &&
      number[0] != '0')
    return "";
  return say(
      "\"{}\" is not a GPU; expected sm_ and its compute capability without the dot, such as sm_90 for 9.0, "
      "or none",
      name);
}

// Three parts at most, and each of at most four digits, as NVIDIA numbers its drivers.
std::string driver_version_problem(const std::string& version) {
  std::size_t parts = 0;
  bool fits = !version.empty() && version.size() <= 32;
  for (std::size_t at = 0; fits && at <= version.size(); ++parts) {
    const auto dot = std::min(version.find('.', at), version.size());
    const std::string_view part = std::string_view(version).substr(at, dot - at);
    fits = all_digits(part) && part.size() <= 4;
    at = dot + 1;
  }
  if (fits && parts >= 2 && parts <= 3) return "";
  return say("\"{}\" is not a driver version; expected two or three numbers, such as 570.86 or 570.86.15",
             version);
}

void describe_target(const TargetDescription& target, Snapshot& snapshot) {
  if (!target.gpus.empty()) describe_gpus(target.gpus, snapshot);
  if (!target.driver.empty()) describe_driver(target.driver, snapshot);
}

}  // namespace scankit::probes
