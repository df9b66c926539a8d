// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

// torch/extension.h of 2.11 is 16 MB of text after the preprocessor; nvcc keeps at least three such files for
// one source at a time (the host's, one architecture's, cudafe's), g++ one of assembly.
constexpr std::uint64_t kMegabyte = 1'000'000, kKernel = 48 * kMegabyte, kPlain = 8 * kMegabyte;

std::string megabytes(std::uint64_t bytes) { return say("{} MB", bytes / kMegabyte); }

// What one compiler writes at a time, and all that run at once. The objects and the module of the smallest
// extension are above the second figure.
std::uint64_t one_job(const Snapshot& snapshot, const BuildPlace& place) {
  const SourceTree& tree = snapshot.sources.value;
  return place.role == "temporary files" && tree.has_kernels && tree.full_headers ? kKernel : kPlain;
}

std::uint64_t all_jobs(const Snapshot& snapshot, const BuildPlace& place) {
  const auto files = std::max<std::uint64_t>(snapshot.sources.value.sources.size(), 1);
  const std::uint64_t at_once = std::clamp<std::uint64_t>(snapshot.build_tools.value.jobs, 1, files);
  return one_job(snapshot, place) * (place.role == "temporary files" ? at_once : 1);
}

std::string shortage_in_words(const BuildPlace& place, std::uint64_t need) {
  if (place.role == "temporary files")
    return say("the compilers write at least {} of temporary files to {}, and {} is free there",
               megabytes(need), place.path, megabytes(place.free));
  if (place.role == "sources")
    return say("the build writes at least {} into {}, and {} is free there", megabytes(need), place.path,
               megabytes(place.free));
  return say("the module takes at least {} in {}, and {} is free there", megabytes(need), place.path,
             megabytes(place.free));
}

Fix fix_for(const Snapshot& snapshot, const BuildPlace& place, std::uint64_t need) {
  const auto& places = snapshot.build_tools.value.places;
  const auto roomiest = std::ranges::max_element(places, {}, &BuildPlace::free);
  if (place.role == "temporary files" && roomiest->free > 4 * need)
    return shell_advice(say("put the temporary files on a file system with room: {}",
                            build_command(snapshot, "TMPDIR=" + word_for_shell(roomiest->path))),
                        export_line("TMPDIR", roomiest->path));
  return Advice{say("free {} on the file system of {}", megabytes(need - place.free), place.path)};
}

CheckResult build_fits_disk(const Snapshot& snapshot) {
  CheckResult result;
  const auto& places = snapshot.build_tools.value.places;
  if (places.empty()) result.not_checked = {say("how much room the disks of the machine that builds have")};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const BuildPlace& place = places[i];
    const std::uint64_t need = all_jobs(snapshot, place);
    if (place.free >= need) continue;
    Finding finding = build_finding(snapshot, Cause::DiskFull, shortage_in_words(place, need));
    // The first compiler meets a full disk for certain, several only where they run at once as planned.
    if (place.free >= one_job(snapshot, place)) finding.severity_override = Severity::Warning;
    const std::string pointer = "/build_tools/value/places/" + std::to_string(i);
    finding.evidence = {{pointer + "/path", place.path}, {pointer + "/free", std::to_string(place.free)}};
    finding.fixes = build_fixes(snapshot, fix_for(snapshot, place, need));
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kBuildFitsDisk{.id = "build-fits-disk",
                                  .question = "Is there room on the disks that the build writes to?",
                                  .needs = kSources,
                                  .run = build_fits_disk,
                                  .asked = sources_are_here};
}  // namespace scankit
