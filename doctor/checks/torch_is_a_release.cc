// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// PEP 440: "2.5.0a0+e000cf0ad9.nv24.10" of a vendor's container, "2.9.0.dev20250801+cu128" of a nightly,
// "2.6.0a0+gitc0ffee" of a checkout. "+cu130" and "+cpu" are the releases' own marks.
bool is_between_releases(const std::string& version) {
  const auto parsed = Version::parse(version);
  if (!parsed) return false;
  if (parsed->is_prerelease()) return true;
  const auto plus = version.find('+');
  const std::string local = plus == std::string::npos ? "" : version.substr(plus + 1);
  return local.starts_with("git") || local.find("nv") != std::string::npos;
}

// That torch cannot be read, other checks say; what its version would add hides no error.
std::string no_torch(const Snapshot& snapshot) {
  return snapshot.torch.present() ? "" : say("torch could not be looked at");
}

CheckResult torch_is_a_release(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  if (torch.version.empty() || !is_between_releases(torch.version)) return {};
  return {
      {{.cause = Cause::NgcPrereleaseTorch,
        .subject = torch.location,
        .module = "torch",
        .summary =
            say("torch {} is a state between two releases: modules built for either neighbour may not fit "
                "it, and only its exported names tell",
                torch.version),
        .evidence = {{"/torch/value/version", torch.version}},
        .fixes = {Advice{say("build modules against exactly this torch, or install the scankit module")}}}},
      {},
      {}};
}

}  // namespace

extern const Check kTorchIsARelease{.id = "torch-is-a-release",
                                    .question = "Is the installed torch a release?",
                                    .needs = 0,
                                    .settled_by_import = false,
                                    .not_applicable = no_torch,
                                    .run = torch_is_a_release};
}  // namespace scankit
