// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

// Measured with torch 2.11 and nvcc 13.0, one architecture: 2.96 GB with torch/extension.h, 0.57 GB with the
// lightest header that has a tensor.
constexpr std::uint64_t kUsual = 3'000'000'000, kLight = 600'000'000, kLeast = 500'000'000;
// setup.py itself, with torch imported, which waits for them.
constexpr std::uint64_t kDriver = 400'000'000;

std::string gigabytes(std::uint64_t bytes) {
  const std::uint64_t tenths = (bytes + 50'000'000) / 100'000'000;
  return say("{}.{} GB", tenths / 10, tenths % 10);
}

std::uint64_t room_of(const Memory& memory) {
  return std::min(memory.available, memory.cgroup_limit.value_or(memory.available));
}

std::uint64_t kernels_of(const SourceTree& tree) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      tree.sources, [](const SourceFact& fact) { return fact.value.ends_with(".cu"); }));
}

CheckResult build_fits_memory(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  CheckResult result;
  if (!snapshot.memory.present()) {
    result.not_checked = {say("how much memory the machine that builds has")};
    return result;
  }
  const Memory& memory = snapshot.memory.value;
  const std::uint64_t room = room_of(memory), kernels = kernels_of(snapshot.sources.value);
  if (kernels == 0) {
    result.not_checked = {say("how many files nvcc compiles: the build file does not name them")};
    return result;
  }
  const std::uint64_t jobs = std::min<std::uint64_t>(tools.jobs, kernels);
  const std::uint64_t each = snapshot.sources.value.full_headers ? kUsual : kLeast;
  // One compiler alone swaps or squeezes through; several at once are what the kernel kills.
  if (jobs < 2 || jobs * each <= room) return result;
  const std::uint64_t left = room - std::min(room, kDriver);
  const std::uint64_t fit =
      std::max<std::uint64_t>(left / (snapshot.sources.value.full_headers ? kUsual : kLight), 1);
  Finding finding =
      build_finding(snapshot, Cause::BuildOom,
                    say("{} compilers run at once, by {}, and take about {} with torch's headers; {} is free",
                        jobs, tools.jobs_from, gigabytes(jobs * each), gigabytes(room)));
  // How much a source takes is seen when it is compiled; below the least that any takes it is certain.
  if (jobs * kLeast <= room) finding.severity_override = Severity::Warning;
  finding.evidence = {{"/build_tools/value/jobs", std::to_string(tools.jobs)},
                      {"/memory/value/available", std::to_string(memory.available)}};
  if (memory.cgroup_limit)
    finding.evidence.push_back({"/memory/value/cgroup_limit", std::to_string(*memory.cgroup_limit)});
  finding.fixes =
      build_fixes(snapshot, shell_advice(say("build with fewer jobs: {}",
                                             build_command(snapshot, say("MAX_JOBS={} NVCC_THREADS=1", fit))),
                                         export_line("MAX_JOBS", std::to_string(fit))));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kBuildFitsMemory{.id = "build-fits-memory",
                                    .question = "Is there memory for the compilers that run at once?",
                                    .needs = kSources,
                                    .not_applicable = needs_no_nvcc,
                                    .run = build_fits_memory,
                                    .asked = sources_are_here};
}  // namespace scankit
