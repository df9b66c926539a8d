// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/finding.h"

#include <algorithm>
#include <iterator>

namespace scankit {

const std::vector<CauseInfo>& all_causes() {
  static const std::vector<CauseInfo> causes = {
#define CAUSE(id, slug, severity, title, next_step) {Cause::id, slug, Severity::severity, title, next_step},
#include "doctor/model/causes.def"
#undef CAUSE
  };
  return causes;
}

const CauseInfo& info(Cause cause) { return all_causes()[static_cast<std::size_t>(cause)]; }

namespace {

struct FaultRow {
  Cause cause;
  AtFault who;
};
// A cause without a row is of the environment: the packages of one Python and what they load.
constexpr FaultRow kAtFault[] = {
    // The package or file itself, wherever it is installed.
    {Cause::CorruptBinary, AtFault::OfModule},
    {Cause::WrongMachineArch, AtFault::OfModule},
    {Cause::OwnSymbolUndefined, AtFault::OfModule},
    {Cause::NumArchMiscompile, AtFault::OfModule},
    {Cause::NumIndexOverflow, AtFault::OfModule},
    {Cause::KnownBugOfRelease, AtFault::OfModule},
    {Cause::GpuRefusedByPackage, AtFault::OfModule},
    // The NVIDIA driver of the machine, and the services that belong to it.
    {Cause::NoDriverLibcuda, AtFault::OfDriver},
    {Cause::DriverTooOld, AtFault::OfDriver},
    {Cause::NvmlMismatch, AtFault::OfDriver},
    {Cause::DriverModuleState, AtFault::OfDriver},
    {Cause::DriverCombinationUnsupported, AtFault::OfDriver},
    {Cause::FabricManagerDown, AtFault::OfDriver},
    // Processor, GPU, disk, container.
    {Cause::DiskFull, AtFault::OfMachine},
    {Cause::ContainerToolkitMissing, AtFault::OfMachine},
    {Cause::ContainerLostGpu, AtFault::OfMachine},
    {Cause::DevShmTooSmall, AtFault::OfMachine},
    {Cause::CpuInstructionMissing, AtFault::OfMachine},
    {Cause::SharedMemoryTooSmall, AtFault::OfMachine},
    {Cause::SystemProgramMissing, AtFault::OfMachine},
    {Cause::SystemLibraryMissing, AtFault::OfMachine},
    {Cause::GpuHardwareFault, AtFault::OfMachine},
    {Cause::Macos, AtFault::OfMachine},
    // The user's program.
    {Cause::RuntimeShapeContract, AtFault::OfCode},
    {Cause::TensorsOnWrongDevice, AtFault::OfCode},
    {Cause::PackageHidden, AtFault::OfCode},
    {Cause::TorchLoadRefused, AtFault::OfCode},
    // A build that is to come or that has failed: tools, flags and sources.
    {Cause::HostCompilerUnsupported, AtFault::OfBuild},
    {Cause::CudaVersionMismatchBuild, AtFault::OfBuild},
    {Cause::NvccUnknownArch, AtFault::OfBuild},
    {Cause::NvccMissing, AtFault::OfBuild},
    {Cause::BuildOom, AtFault::OfBuild},
    {Cause::NvccPresentButIsolated, AtFault::OfBuild},
    {Cause::TorchMissingAtBuild, AtFault::OfBuild},
    {Cause::NinjaMissing, AtFault::OfBuild},
    {Cause::SdistMissingCsrc, AtFault::OfBuild},
    {Cause::CudaHeadersMissing, AtFault::OfBuild},
    {Cause::NoGpuAtBuild, AtFault::OfBuild},
    {Cause::CrossDeviceLink, AtFault::OfBuild},
    {Cause::OldCudaToolkit, AtFault::OfBuild},
    {Cause::CxxStandardTooLow, AtFault::OfBuild},
    {Cause::SetuptoolsPartsMissing, AtFault::OfBuild},
    {Cause::IncludeMissingInSources, AtFault::OfBuild},
    {Cause::CudaHeadersChanged, AtFault::OfBuild},
    {Cause::SystemHeadersMissing, AtFault::OfBuild},
    // pip, uv or conda found nothing to install, or could not reach where it is.
    {Cause::NetworkBlocked, AtFault::OfInstallation},
    {Cause::WheelNotFound, AtFault::OfInstallation},
    {Cause::ReleaseNotOnIndex, AtFault::OfInstallation},
};
static_assert(std::ranges::all_of(kAtFault,
                                  [](const FaultRow& row) {
                                    return std::ranges::count(kAtFault, row.cause, &FaultRow::cause) == 1;
                                  }),
              "each cause once");

}  // namespace

AtFault at_fault(Cause cause) {
  const auto row = std::ranges::find(kAtFault, cause, &FaultRow::cause);
  return row == std::end(kAtFault) ? AtFault::OfEnvironment : row->who;
}

std::optional<Cause> cause_from_slug(std::string_view slug) {
  const auto& causes = all_causes();
  const auto found = std::ranges::find(causes, slug, &CauseInfo::slug);
  if (found == causes.end()) return std::nullopt;
  return found->cause;
}

const Finding* root(const Report& report) {
  const auto found = std::ranges::find_if(report.findings, [](const Finding& finding) {
    return finding.severity() == Severity::Error && !finding.because_of;
  });
  return found == report.findings.end() ? nullptr : &*found;
}

Tally tally(const Report& report) {
  Tally tally;
  for (const Finding& finding : report.findings) {
    if (finding.severity() == Severity::Error) ++tally.errors;
    if (finding.severity() == Severity::Warning) ++tally.warnings;
    if (finding.severity() == Severity::Note) ++tally.notes;
  }
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.state == CheckState::Passed) ++tally.passed;
    if (outcome.state == CheckState::NotApplicable && !outcome.not_asked) ++tally.not_applicable;
    if (outcome.state == CheckState::Unknown) ++tally.unknown;
    if (outcome.state == CheckState::Crashed) ++tally.crashed;
  }
  return tally;
}

namespace {

struct CircumstanceRow {
  Circumstance circumstance;
  std::optional<Severity> severity;
};

// In the order of their weight.
const std::vector<CircumstanceRow>& circumstance_rows() {
  constexpr std::optional<Severity> Note = Severity::Note, Warning = Severity::Warning,
                                    Error = Severity::Error, Usual = std::nullopt;
  static const std::vector<CircumstanceRow> rows = {
#define CIRCUMSTANCE(id, severity) {Circumstance::id, severity},
#include "doctor/model/circumstances.def"
#undef CIRCUMSTANCE
  };
  return rows;
}

}  // namespace

bool has(const Circumstances& circumstances, Circumstance wanted) {
  return std::ranges::find(circumstances, wanted) != circumstances.end();
}

std::optional<Severity> severity_under(const Circumstances& circumstances) {
  for (const CircumstanceRow& row : circumstance_rows())
    if (row.severity && has(circumstances, row.circumstance)) return row.severity;
  return std::nullopt;
}

// A CI policy decides before the circumstances, and they before the catalogue of causes.
Severity Finding::severity() const {
  if (policy_severity) return *policy_severity;
  return severity_under(circumstances).value_or(info(cause).severity);
}

}  // namespace scankit
