// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

std::string moves_nothing(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (!tree.fetches_wheel) return say("the build file asks for no ready wheel");
  return tree.renames_wheel ? "" : say("the build file does not rename what it fetched");
}

const BuildPlace* place_of(const Snapshot& snapshot, std::string_view role) {
  const auto& places = snapshot.build_tools.value.places;
  const auto found = std::ranges::find(places, role, &BuildPlace::role);
  return found == places.end() ? nullptr : &*found;
}

// rename(2): EXDEV where the two paths are not on the same mounted file system. The wheel is fetched into the
// current folder, which is that of the sources, and pip's folder for wheels is below the temporary one.
CheckResult wheel_stays_on_device(const Snapshot& snapshot) {
  CheckResult result;
  const BuildPlace *sources = place_of(snapshot, "sources"),
                   *temporary = place_of(snapshot, "temporary files");
  if (sources == nullptr || temporary == nullptr) {
    result.not_checked = {
        say("on which file systems the machine that builds keeps the sources and its temporary files")};
    return result;
  }
  if (sources->device == temporary->device) return result;
  Finding finding = build_finding(
      snapshot, Cause::CrossDeviceLink,
      say("{} moves a wheel that it fetched by os.rename, and {} and {} are different file systems",
          snapshot.sources.value.build_file, sources->path, temporary->path));
  // It comes to that only where a ready wheel exists for this environment.
  finding.severity_override = Severity::Warning;
  const std::string list = "/build_tools/value/places/";
  for (const BuildPlace* place : {sources, temporary}) {
    const auto i = std::to_string(place - snapshot.build_tools.value.places.data());
    finding.evidence.push_back({list + i + "/path", place->path});
    finding.evidence.push_back({list + i + "/device", std::to_string(place->device)});
  }
  const std::string variable = "TMPDIR=" + word_for_shell(sources->path);
  finding.fixes = {
      shell_advice(say("keep the temporary files beside the sources: {}", build_command(snapshot, variable)),
                   export_line("TMPDIR", sources->path))};
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kWheelStaysOnDevice{.id = "wheel-stays-on-device",
                                       .question = "Can a ready wheel be moved to where the build puts it?",
                                       .needs = kSources,
                                       .not_applicable = moves_nothing,
                                       .run = wheel_stays_on_device,
                                       .asked = sources_are_here};
}  // namespace scankit
