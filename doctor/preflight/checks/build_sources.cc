// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/preflight/checks/build_queries.h"

namespace scankit::preflight {
namespace {

// Where to get the missing files. A checkout has them in submodules; an archive from an index was
// made without them.
Message where_they_are(const SourceTree& tree) {
  if (!tree.unpacked_archive)
    return message(
        "check the directory out again, with its submodules: git -C {} submodule update --init --recursive",
        shell_quoted(tree.folder));
  if (tree.homepage.empty())
    return message(
        "this archive lacks them: use a prebuilt wheel or a later release, or a checkout of the project's "
        "repository at the release's tag");
  return message(
      "this archive lacks them: use a prebuilt wheel or a later release, or check out the release's tag "
      "from {}",
      tree.homepage);
}

checks::CheckResult sources_complete(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  checks::CheckResult result;
  result.not_checked.assign(tree.not_read.begin(), tree.not_read.end());
  if (tree.sources.empty())
    result.not_checked.push_back(message("whether all files exist: {} does not list them", tree.build_file));
  Finding finding = build_finding(snapshot, Cause::SdistMissingCsrc, "");
  std::vector<std::string> names;
  std::size_t total = 0;
  for (const std::size_t i : in_force(snapshot, tree.missing)) {
    ++total;
    if (names.size() < 3) names.push_back(tree.missing[i].value);
    finding.evidence.push_back(source_evidence("missing", i, tree.missing[i].value));
  }
  if (names.empty()) return result;
  // The build may create the files first. An archive that lacks its whole source directory shows
  // no sign of that.
  if (tree.generates && !tree.unpacked_archive) {
    result.not_checked.push_back(
        message("whether {} creates {} before it compiles", tree.build_file, join(names)));
    return result;
  }
  finding.summary =
      total == names.size()
          ? message("{} compiles files that are not in the directory: {}", tree.build_file, join(names))
          : message("{} compiles files that are not in the directory, {} of them: {} and more",
                    tree.build_file, total, join(names));
  if (tree.fetches_wheel)
    finding.summary =
        message("{}; only the prebuilt wheel that it requests first can avoid the build", finding.summary);
  finding.fixes = build_fixes(snapshot, Advice{where_they_are(tree)});
  // What users want from such an archive is the package, and scankit can install it without the
  // missing files.
  if (const std::string package = normalized_name(tree.name);
      tree.unpacked_archive && (package == "mamba-ssm" || package == "causal-conv1d"))
    finding.fixes.insert(finding.fixes.begin() + 1, InstallModelPackage{package});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kSourcesComplete{
    .id = "sources-complete",
    .question = "Does the directory contain every file that its build compiles?",
    .needs = checks::kSources,
    .not_applicable = nullptr,
    .run = sources_complete,
    .asked = sources_are_here};

namespace {

// Why isolation is of no interest: CMake knows none, or pyproject.toml switches it off and
// torch is there.
Message without_python_build(const Snapshot& snapshot) {
  if (Message why = builds_no_python_module(snapshot); !why.empty()) return why;
  const SourceTree& tree = snapshot.sources.value;
  return tree.avoids_isolation && snapshot.torch.present()
             ? message("pyproject.toml disables build isolation")
             : "";
}

// The index of the requirement on torch in [build-system], if there is one.
std::optional<std::size_t> torch_requirement(const SourceTree& tree) {
  for (std::size_t i = 0; i < tree.build_requires.size(); ++i) {
    const std::string& requirement = tree.build_requires[i];
    if (normalized_name(requirement.substr(0, requirement.find_first_of(" <>=!~;[(@"))) == "torch") return i;
  }
  return std::nullopt;
}

// Whether a pin such as torch==2.4.0 or torch==2.4.* names the installed release (PEP 440). Nothing for
// other requirements, for which an installer takes the newest release.
std::optional<bool> pin_fits(const std::string& requirement, const std::string& installed) {
  const auto at = requirement.find("==");
  if (at == std::string::npos || requirement.find(',') != std::string::npos) return std::nullopt;
  std::string wanted = requirement.substr(at + 2, requirement.find(';') - at - 2);
  std::erase_if(wanted, [](char c) { return c == ' ' || c == '='; });
  const auto pin = Version::parse(wanted), have = Version::parse(installed);
  if (!pin || !have) return std::nullopt;
  if (!wanted.ends_with(".*")) return *pin == *have;
  for (std::size_t i = 0; i < pin->release.size(); ++i)
    if (pin->part(i) != have->part(i)) return false;
  return true;
}

// pip and uv build in an environment with what [build-system] requires and nothing else (PEP 517, PEP
// 518); without a pyproject.toml that is setuptools.
checks::CheckResult no_torch_in_isolation(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const bool here = snapshot.torch.state != ProbeState::Absent;
  Finding finding = build_finding(snapshot, Cause::TorchMissingAtBuild, "");
  finding.evidence = {{"/sources/value/imports_torch", "true"}};
  if (here) {
    finding.circumstances.push_back(Circumstance::OnlyInIsolatedBuild);
    finding.summary = message(
        "{} imports torch, which is not in its build requirements: an isolated build, the default of "
        "pip and uv, fails at that import",
        tree.build_file);
    finding.fixes = build_fixes(
        snapshot, checks::shell_advice(message("build without isolation: {}", build_command(snapshot)),
                                       build_command(snapshot)));
  } else {
    finding.summary =
        message("{} imports torch, which is neither in its build requirements nor in this environment",
                tree.build_file);
    finding.fixes = build_fixes(snapshot, InstallPackages{{"torch"}});
  }
  return {{std::move(finding)}};
}

// The isolated environment gets a torch of its own. That is an error only if it certainly is another one.
checks::CheckResult other_torch_in_isolation(const Snapshot& snapshot, std::size_t i) {
  const SourceTree& tree = snapshot.sources.value;
  const Torch& torch = snapshot.torch.value;
  const std::string& requirement = tree.build_requires[i];
  const auto fits = pin_fits(requirement, torch.version);
  if (!snapshot.torch.present() || fits == true) return {};
  const bool cpu =
      snapshot.build_tools.value.cpu_index && !torch.cuda.empty() && needs_no_cuda(snapshot).empty();
  Finding finding =
      build_finding(snapshot, cpu ? Cause::NvccPresentButIsolated : Cause::BuildIsolationWrongTorch, "");
  if (cpu)
    finding.summary = message(
        "an isolated build, the default of pip and uv, installs its own torch for \"{}\" from the index "
        "of CPU builds in PIP_INDEX_URL, which finds no nvcc",
        requirement);
  else if (fits == false)
    finding.summary = message(
        "an isolated build, the default of pip and uv, installs \"{}\" and compiles against it; torch "
        "{} is installed",
        requirement, torch.version);
  else
    finding.summary = message(
        "an isolated build, the default of pip and uv, compiles against the newest torch that satisfies "
        "\"{}\", which may differ from the installed {}",
        requirement, torch.version);
  if (!cpu && fits != false) finding.circumstances.push_back(Circumstance::IsolatedBuildMayFit);
  finding.evidence = {{"/sources/value/build_requires/" + std::to_string(i), requirement},
                      {"/torch/value/version", torch.version}};
  if (cpu) finding.evidence.push_back({"/build_tools/value/cpu_index", "true"});
  finding.fixes = build_fixes(
      snapshot, checks::shell_advice(message("build without isolation: {}", build_command(snapshot)),
                                     build_command(snapshot)));
  return {{std::move(finding)}};
}

checks::CheckResult torch_there_at_build(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (const auto i = torch_requirement(tree)) return other_torch_in_isolation(snapshot, *i);
  return tree.imports_torch ? no_torch_in_isolation(snapshot) : checks::CheckResult{};
}

}  // namespace

extern const checks::Check kTorchThereAtBuild{.id = "torch-there-at-build",
                                              .question = "Will the build find the installed torch?",
                                              .needs = checks::kSources,
                                              .not_applicable = without_python_build,
                                              .run = torch_there_at_build,
                                              .asked = sources_are_here};

namespace {

// Looks for what torch has removed from its headers: header files, and .type() in AT_DISPATCH. At most
// three places are quoted; all are evidence.
checks::CheckResult torch_api_present(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  if (!tools.torch_has_headers) {
    result.not_checked = {
        message("the sources, compared with torch's headers: the installed torch has none")};
    return result;
  }
  if (tree.sources.empty())
    result.not_checked = {message("which files are compiled: the build file does not list them")};
  Finding finding = build_finding(snapshot, Cause::TorchApiRemovedInSource, "");
  std::vector<Message> parts;
  const auto add = [&](const char* list, std::size_t i, const SourceFact& fact, Message sentence) {
    if (parts.size() < 3) parts.push_back(std::move(sentence));
    finding.evidence.push_back(source_evidence(list, i, fact.value));
  };
  for (std::size_t i = 0; i < tree.lost_headers.size(); ++i)
    add("lost_headers", i, tree.lost_headers[i],
        message("<{}>, which {} includes, does not exist", tree.lost_headers[i].value,
                place(tree.lost_headers[i])));
  for (std::size_t i = 0; i < tree.type_dispatch.size() && !tools.dispatch_takes_type; ++i)
    add("type_dispatch", i, tree.type_dispatch[i],
        message("{} no longer accepts .type(), which {} uses", tree.type_dispatch[i].value,
                place(tree.type_dispatch[i])));
  if (parts.empty()) return result;
  const std::size_t more = finding.evidence.size() - parts.size();
  finding.summary = more == 0 ? message("in torch {}: {}", snapshot.torch.value.version, clauses_of(parts))
                              : message("in torch {}: {}; and {} more places", snapshot.torch.value.version,
                                        clauses_of(parts), more);
  finding.fixes = build_fixes(
      snapshot,
      Advice{message("use a release of these sources that supports this torch; by hand: .scalar_type() for "
                     ".type() in AT_DISPATCH, <ATen/cuda/CUDAContext.h> for <THC/THC.h>")});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kTorchApiPresent{
    .id = "torch-api-present",
    .question = "Does the installed torch have the interfaces that the sources use?",
    .needs = checks::kSources | checks::kTorch,
    .not_applicable = nullptr,
    .run = torch_api_present,
    .asked = sources_are_here};

namespace {

// Standards are compared as text, where "98" would be newer than "11".
bool is_older(const std::string& standard, const std::string& than) {
  return standard < than || standard.starts_with('9');
}

checks::CheckResult cxx_standard_high_enough(const Snapshot& snapshot) {
  const std::vector<SourceFact>& standards = snapshot.sources.value.standards;
  const std::string& demanded = snapshot.torch.value.cxx_standard;
  checks::CheckResult result;
  if (demanded.empty()) {
    if (!standards.empty())
      result.not_checked = {message("which C++ standard torch's headers need: there are none")};
    return result;
  }
  Finding finding = build_finding(snapshot, Cause::CxxStandardTooLow, "");
  std::vector<std::string> places, edits;
  std::string lowest;
  for (const std::size_t i : in_force(snapshot, standards)) {
    if (!is_older(standards[i].value, demanded)) continue;
    if (lowest.empty() || is_older(standards[i].value, lowest)) lowest = standards[i].value;
    places.push_back(place(standards[i]));
    // Changes exactly the number of the standard on that line; g++ extensions (gnu++14)
    // keep their prefix.
    edits.push_back(checks::edit_command(snapshot.sources.value, standards[i],
                                         "std=\\(c\\|gnu\\)++" + standards[i].value, "std=\\1++" + demanded));
    finding.evidence.push_back(source_evidence("standards", i, standards[i].value));
  }
  if (places.empty()) return result;
  finding.summary = message("the headers of torch {} need C++{}, and C++{} is requested at {}",
                            snapshot.torch.value.version, demanded, lowest, join(places));
  finding.evidence.push_back({"/torch/value/cxx_standard", demanded});
  finding.fixes = build_fixes(
      snapshot,
      checks::shell_advice(message("write -std=c++{} at {}, for the host compiler and for nvcc, then: {}",
                                   demanded, join(places), build_command(snapshot)),
                           join(edits, " && ")));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kCxxStandardHighEnough{
    .id = "cxx-standard-high-enough",
    .question = "Do the sources request the C++ standard that torch's headers need?",
    .needs = checks::kSources | checks::kTorch,
    .not_applicable = nullptr,
    .run = cxx_standard_high_enough,
    .asked = sources_are_here};

}  // namespace scankit::preflight
