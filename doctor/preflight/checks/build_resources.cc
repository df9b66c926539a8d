// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/preflight/checks/build_queries.h"

namespace scankit::preflight {
namespace {

// Bytes of memory for one compiler job, measured with torch 2.11 and nvcc 13.0 for one architecture: 2.96
// GB with torch/extension.h, 0.57 GB with the lightest header that declares a tensor. kLeast is below
// both, for what is certain.
constexpr std::uint64_t kUsual = 3'000'000'000, kLight = 600'000'000, kLeast = 500'000'000;
// Bytes of setup.py itself, which has imported torch and waits for the compilers.
constexpr std::uint64_t kDriver = 400'000'000;

// Tenths of 10^9 bytes, without floating point, so that every machine prints the same. What is needed is rounded
// up and what is free down: a need that is larger is larger in print too.
enum class Round { Down, Up };
Message gigabytes(std::uint64_t bytes, Round round) {
  constexpr std::uint64_t kTenth = 100'000'000;
  const std::uint64_t tenths = (bytes + (round == Round::Up ? kTenth - 1 : 0)) / kTenth;
  return message("{}.{} GB", tenths / 10, tenths % 10);
}

// The cgroup's limit counts if it is the smaller one.
std::uint64_t room_of(const Memory& memory) {
  return std::min(memory.available, memory.cgroup_limit.value_or(memory.available));
}

}  // namespace

std::uint64_t jobs_that_fit(const Snapshot& snapshot) {
  if (!snapshot.memory.present()) return 0;
  const std::uint64_t room = room_of(snapshot.memory.value), left = room - std::min(room, kDriver);
  return std::max<std::uint64_t>(left / (snapshot.sources.value.full_headers ? kUsual : kLight), 1);
}

namespace {

std::uint64_t kernels_of(const SourceTree& tree) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      tree.sources, [](const SourceFact& fact) { return fact.value.ends_with(".cu"); }));
}

checks::CheckResult build_fits_memory(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  if (!snapshot.memory.present()) {
    result.not_checked = {message("how much memory the build machine has")};
    return result;
  }
  const Memory& memory = snapshot.memory.value;
  const std::uint64_t room = room_of(memory), kernels = kernels_of(snapshot.sources.value);
  if (kernels == 0) {
    result.not_checked = {message("how many files nvcc compiles: the build file does not list them")};
    return result;
  }
  // ninja starts at most one job for each file.
  const std::uint64_t jobs = std::min<std::uint64_t>(tools.jobs, kernels);
  // Deciding whether there is a problem uses the certain minimum for light headers; the suggestion below
  // uses the usual one.
  const std::uint64_t each = snapshot.sources.value.full_headers ? kUsual : kLeast;
  // A single compiler may swap and still finish. Several at once are what the kernel's OOM killer ends.
  if (jobs < 2 || jobs * each <= room) return result;
  const std::uint64_t fit = jobs_that_fit(snapshot);
  Finding finding = build_finding(
      snapshot, Cause::BuildOom,
      message("{} compilers run at once, because of {}, and need about {} with torch's headers; "
              "only {} is free",
              jobs, tools.jobs_from, gigabytes(jobs * each, Round::Up), gigabytes(room, Round::Down)));
  // How much a file takes shows only when it is compiled; below the minimum of any file the
  // failure is certain.
  if (jobs * kLeast <= room) finding.circumstances.push_back(Circumstance::LeastNeedFits);
  finding.evidence = {{"/build_tools/value/jobs", std::to_string(tools.jobs)},
                      {"/memory/value/available", std::to_string(memory.available)}};
  if (memory.cgroup_limit)
    finding.evidence.push_back({"/memory/value/cgroup_limit", std::to_string(*memory.cgroup_limit)});
  finding.fixes = build_fixes(
      snapshot,
      checks::shell_advice(message("build with fewer jobs: {}",
                                   build_command(snapshot, fmt::format("MAX_JOBS={} NVCC_THREADS=1", fit))),
                           checks::export_line("MAX_JOBS", std::to_string(fit))));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kBuildFitsMemory{
    .id = "build-fits-memory",
    .question = "Is there enough memory for the parallel compile jobs?",
    .needs = checks::kSources,
    .not_applicable = needs_no_nvcc,
    .run = build_fits_memory,
    .asked = sources_are_here};

namespace {

// Bytes of temporary files. torch/extension.h of 2.11 is 16 MB of text after preprocessing. nvcc keeps at
// least three such files for one source at a time (for the host, for one architecture, and cudafe's
// output), g++ one file of assembly.
constexpr std::uint64_t kMegabyte = 1'000'000, kKernel = 48 * kMegabyte, kPlain = 8 * kMegabyte;

Message megabytes(std::uint64_t bytes) { return message("{} MB", bytes / kMegabyte); }

// What one compiler writes at a time, in bytes. The objects and the module of even the smallest extension
// are larger than kPlain.
std::uint64_t one_job(const Snapshot& snapshot, const BuildPlace& place) {
  const SourceTree& tree = snapshot.sources.value;
  return place.role == "temporary files" && tree.has_kernels && tree.full_headers ? kKernel : kPlain;
}

// Temporary files exist once for each running job; the other places need the space once.
std::uint64_t all_jobs(const Snapshot& snapshot, const BuildPlace& place) {
  const auto files = std::max<std::uint64_t>(snapshot.sources.value.sources.size(), 1);
  const std::uint64_t at_once = std::clamp<std::uint64_t>(snapshot.build_tools.value.jobs, 1, files);
  return one_job(snapshot, place) * (place.role == "temporary files" ? at_once : 1);
}

Message shortage_in_words(const BuildPlace& place, std::uint64_t need) {
  if (place.role == "temporary files")
    return message("the compilers write at least {} of temporary files to {}, where only {} is free",
                   megabytes(need), place.path, megabytes(place.free));
  if (place.role == "sources")
    return message("the build writes at least {} to {}, where only {} is free", megabytes(need), place.path,
                   megabytes(place.free));
  return message("the module needs at least {} in {}, where only {} is free", megabytes(need), place.path,
                 megabytes(place.free));
}

Fix fix_for(const Snapshot& snapshot, const BuildPlace& place, std::uint64_t need) {
  const auto& places = snapshot.build_tools.value.places;
  const auto roomiest = std::ranges::max_element(places, {}, &BuildPlace::free);
  if (place.role == "temporary files" && roomiest->free > 4 * need)
    return checks::shell_advice(message("put the temporary files on a file system with enough space: {}",
                                        build_command(snapshot, "TMPDIR=" + shell_quoted(roomiest->path))),
                                checks::export_line("TMPDIR", roomiest->path));
  return Advice{
      message("free {} on the file system of {}", megabytes(need - place.free + kMegabyte - 1), place.path)};
}

checks::CheckResult build_fits_disk(const Snapshot& snapshot) {
  checks::CheckResult result;
  const auto& places = snapshot.build_tools.value.places;
  if (places.empty()) result.not_checked = {message("how much disk space the build machine has")};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const BuildPlace& place = places[i];
    const std::uint64_t need = all_jobs(snapshot, place);
    if (place.free >= need) continue;
    Finding finding = build_finding(snapshot, Cause::DiskFull, shortage_in_words(place, need));
    // The first compiler certainly fails on such a disk; several fail only if they run at the same
    // time as planned.
    if (place.free >= one_job(snapshot, place)) finding.circumstances.push_back(Circumstance::LeastNeedFits);
    const std::string pointer = "/build_tools/value/places/" + std::to_string(i);
    finding.evidence = {{pointer + "/path", place.path}, {pointer + "/free", std::to_string(place.free)}};
    finding.fixes = build_fixes(snapshot, fix_for(snapshot, place, need));
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const checks::Check kBuildFitsDisk{.id = "build-fits-disk",
                                          .question = "Is there enough disk space for the build?",
                                          .needs = checks::kSources,
                                          .run = build_fits_disk,
                                          .asked = sources_are_here};

namespace {

// Why this check does not apply: the build fetches no wheel, or does not move it.
Message moves_nothing(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (!tree.fetches_wheel) return message("the build file requests no prebuilt wheel");
  return tree.renames_wheel ? "" : message("the build file does not rename its download");
}

const BuildPlace* place_of(const Snapshot& snapshot, std::string_view role) {
  const auto& places = snapshot.build_tools.value.places;
  const auto found = std::ranges::find(places, role, &BuildPlace::role);
  return found == places.end() ? nullptr : &*found;
}

// rename(2) fails with EXDEV if the two paths are on different mounted file systems. The wheel is
// downloaded into the current directory, which is that of the sources, and pip's directory for wheels is
// below the temporary one.
checks::CheckResult wheel_stays_on_device(const Snapshot& snapshot) {
  checks::CheckResult result;
  const BuildPlace *sources = place_of(snapshot, "sources"),
                   *temporary = place_of(snapshot, "temporary files");
  if (sources == nullptr || temporary == nullptr) {
    result.not_checked = {
        message("on which file systems the build machine keeps the sources and its temporary files")};
    return result;
  }
  if (sources->device == temporary->device) return result;
  Finding finding = build_finding(
      snapshot, Cause::CrossDeviceLink,
      message("{} moves a downloaded wheel with os.rename, and {} and {} are different file systems",
              snapshot.sources.value.build_file, sources->path, temporary->path));
  finding.circumstances.push_back(Circumstance::OnlyWithPrebuiltWheel);
  const std::string list = "/build_tools/value/places/";
  for (const BuildPlace* place : {sources, temporary}) {
    const auto i = std::to_string(place - snapshot.build_tools.value.places.data());
    finding.evidence.push_back({list + i + "/path", place->path});
    finding.evidence.push_back({list + i + "/device", std::to_string(place->device)});
  }
  const std::string variable = "TMPDIR=" + shell_quoted(sources->path);
  finding.fixes = {checks::shell_advice(
      message("keep the temporary files next to the sources: {}", build_command(snapshot, variable)),
      checks::export_line("TMPDIR", sources->path))};
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kWheelStaysOnDevice{
    .id = "wheel-stays-on-device",
    .question = "Are the build's temporary directory and output on one file system?",
    .needs = checks::kSources,
    .not_applicable = moves_nothing,
    .run = wheel_stays_on_device,
    .asked = sources_are_here};

}  // namespace scankit::preflight
