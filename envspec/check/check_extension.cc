// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "builder/fix/distribution.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/checks/snapshot_queries.h"
#include "envspec/check/check.h"

// The questions of a spec about GPUs, device code and each extension, and check_spec() over all of them.
namespace scankit::envspec {
namespace {

// Reports GPUs that the spec does not name. That a GPU of the spec is not here is no drift: an environment
// can be for several kinds of machines.
Outcome check_gpus_here(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts) {
  Outcome outcome = asked("spec-gpus", message("Is every GPU of this machine in the spec?"));
  if (facts.gpus.state == ProbeState::Absent) {
    left_out(outcome, message("the GPUs of the spec: {}", why_missing(facts.gpus)));
    return outcome;
  }
  if (!facts.gpus.present()) {
    not_known(outcome, why_missing(facts.gpus));
    return outcome;
  }
  for (std::size_t i = 0; i < snapshot.gpus.value.size(); ++i) {
    const Gpu& gpu = snapshot.gpus.value[i];
    if (std::ranges::find(spec.gpus, "sm_" + gpu.sm) != spec.gpus.end()) continue;
    Finding finding;
    finding.cause = Cause::DriftGpu;
    finding.subject = fmt::format("GPU {} ({})", gpu.index, gpu.name);
    finding.summary =
        message("{} lists {}, but this GPU is sm_{}", line_name(spec, "gpus"), join(spec.gpus), gpu.sm);
    finding.evidence = {{"/gpus/value/" + std::to_string(i) + "/sm", gpu.sm}};
    finding.fixes = {
        Advice{message("add sm_{} to gpus in {}, then run scankit env check to see what lacks code for it",
                       gpu.sm, spec.file)}};
    finding.demanded_by = file_line(spec, "gpus");
    drifted(outcome, std::move(finding));
  }
  return outcome;
}

// The GPUs for which none of the images runs, neither a cubin nor PTX that the driver can compile.
std::vector<std::string> not_served(const std::vector<std::string>& gpus,
                                    const std::vector<DeviceImage>& images) {
  std::vector<std::string> missing;
  for (const std::string& gpu : gpus) {
    const auto sm = static_cast<unsigned>(std::stoul(gpu.substr(3)));  // the parser took sm_ and digits
    if (std::ranges::none_of(images, [&](const DeviceImage& image) { return checks::runs_on(image, sm); }))
      missing.push_back(gpu);
  }
  return missing;
}

// Files without any device code are skipped: they are not meant for GPUs.
Outcome check_code(const Spec& spec, const Snapshot& snapshot) {
  Outcome outcome =
      asked("spec-gpu-code", message("Do torch and the extensions contain code for every GPU in the spec?"));
  if (!snapshot.torch.present() && snapshot.torch.state != ProbeState::Absent)
    not_known(outcome, message("torch: {}", why_missing(snapshot.torch)));
  bool any = false;
  for (const checks::DeviceCode& code : checks::device_code(snapshot)) {
    if (code.images->empty()) continue;
    any = true;
    const auto missing = not_served(spec.gpus, *code.images);
    if (missing.empty()) continue;
    Finding finding;
    finding.cause = Cause::DriftGpu;
    finding.subject = code.subject;
    finding.module = code.module;
    finding.summary =
        message("{} lists {}, but the file contains code for {}, none of which runs on {}",
                line_name(spec, "gpus"), join(spec.gpus), checks::image_list(*code.images), join(missing));
    finding.demanded_by = file_line(spec, "gpus");
    if (checks::is_bundled_module(code.module))
      finding.fixes = {
          Advice{message("build it for them: scankit build --module {} --for {}", code.module, spec.file)}};
    else
      finding.fixes = {Advice{message("install a build for these GPUs, or remove them from {}", spec.file)}};
    drifted(outcome, std::move(finding));
  }
  if (!any && outcome.state == CheckState::Passed)
    left_out(outcome, message("the code for the GPUs in the spec: nothing here contains device code"));
  return outcome;
}

}  // namespace

std::vector<Outcome> check_gpus(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts) {
  if (spec.gpus.empty()) return {};
  return {check_gpus_here(spec, snapshot, facts), check_code(spec, snapshot)};
}

namespace {

// Compares one extension with its entry in the spec, field by field. Each field that differs is its own
// finding, with the line of the spec.
class ExtensionCheck {
 public:
  ExtensionCheck(const Spec& spec, const ExtensionSpec& wanted, const ExtensionFacts& file, Outcome& outcome)
      : spec_(spec), wanted_(wanted), file_(file), outcome_(outcome) {}

  void run() {
    if (file_.file_state == "unreadable" || file_.file_state == "vanished")
      return not_known(outcome_, message("{} could not be read", file_.path));
    if (file_.file_state != "elf")
      return add(
          "", message("{} requires it, but its file is not a complete library: {}", at(""), file_.file_state),
          "/file_state", file_.file_state);
    package();
    origin();
    word("torch_abi", wanted_.torch_abi, file_.torch_abi, "");
    word("python_tag", wanted_.python_tag, file_.python_tag, "/tag");
    word("string_abi", wanted_.string_abi, file_.string_abi, "/string_abi");
    built_for_cuda();
    built_for_torch();
    code();
  }

 private:
  std::string path(const std::string& field) const {
    return "extensions." + wanted_.module + (field.empty() ? "" : "." + field);
  }
  std::string at(const std::string& field) const { return line_name(spec_, path(field)); }

  // The universal module of scankit is the fix for its own modules, unless the spec demands a build that
  // is linked to torch.
  std::vector<Fix> fixes() const {
    const bool ours = checks::is_bundled_module(wanted_.module) &&
                      (wanted_.torch_abi.empty() || wanted_.torch_abi == "none");
    if (ours) return {InstallModule{wanted_.module}};
    const std::string& package = wanted_.distribution.empty() ? file_.distribution : wanted_.distribution;
    if (package.empty()) return {Advice{message("install it as the spec says, or edit the spec")}};
    return {RebuildPackage{package, file_.version, "", {}},
            Advice{message("or edit the spec, if this is what you want")}};
  }

  void add(const std::string& field, Message summary, const std::string& pointer, const std::string& here) {
    Finding finding;
    finding.cause = Cause::DriftExtension;
    finding.subject = file_.path;
    finding.module = wanted_.module;
    finding.summary = std::move(summary);
    finding.demanded_by = file_line(spec_, path(field));
    if (!pointer.empty()) finding.evidence = {{file_.pointer + pointer, here}};
    finding.fixes = fixes();
    drifted(outcome_, std::move(finding));
  }

  void word(const std::string& field, const std::string& wanted, const std::string& here,
            const std::string& pointer) {
    if (wanted.empty() || wanted == here) return;
    add(field,
        here.empty() ? message("{} requires {} {}, but the file has none", at(field), field, wanted)
                     : message("{} requires {} {}, but the file has {}", at(field), field, wanted, here),
        pointer, here);
  }

  bool same_package() const {
    return normalized_name(wanted_.distribution) == normalized_name(file_.distribution);
  }

  // Distribution and version belong together: the version is that of the package which owns the file. A
  // file that no package owns meets no version.
  void package() {
    if (!wanted_.distribution.empty() && !same_package())
      add("distribution",
          file_.distribution.empty()
              ? message("{} requires it from the package {}, but no package lists this "
                        "file",
                        at("distribution"), wanted_.distribution)
              : message("{} requires it from the package {}, but it is from {}", at("distribution"),
                        wanted_.distribution, file_.distribution),
          "/distribution", file_.distribution);
    if (wanted_.version.empty()) return;
    const auto fits = wanted_.version.contains(std::string_view(file_.version));
    if (fits && *fits) return;
    if (file_.version.empty() && !file_.distribution.empty())
      return not_known(outcome_, message("the version of the package of {} is not known", file_.path));
    add("version",
        file_.version.empty()
            ? message("{} requires version {}, but no package tells the version of this one", at("version"),
                      wanted_.version.text())
            : message("{} requires {} {}, but found {}", at("version"), file_.distribution,
                      wanted_.version.text(), file_.version),
        "", "");
  }

  // How a wheel or a build was got is not recorded; scankit's own module is known by its package.
  void origin() {
    if (wanted_.from != "scankit") return;
    const std::string own = normalized_name(fix::distribution_stem(wanted_.module));
    if (normalized_name(file_.distribution) == own) return;
    add("from",
        file_.distribution.empty()
            ? message("{} requires scankit's own module, but no package lists this file", at("from"))
            : message("{} requires scankit's own module, but it is from {}", at("from"), file_.distribution),
        "/distribution", file_.distribution);
  }

  void built_for_cuda() {
    if (wanted_.cuda.empty()) return;
    const bool fits = wanted_.cuda.contains(std::string_view(file_.cuda_major)).value_or(false);
    if (fits) return;
    add("cuda",
        file_.cuda_major.empty() ? message("{} requires it to need CUDA {}, but it needs no CUDA library",
                                           at("cuda"), wanted_.cuda.text())
                                 : message("{} requires it to need CUDA {}, but it needs CUDA {}", at("cuda"),
                                           wanted_.cuda.text(), file_.cuda_major),
        "/cuda_major", file_.cuda_major);
  }

  // The file's names tell an oldest and a newest release; the spec must take both. A file that uses no C++
  // names of torch fits every release.
  void built_for_torch() {
    if (wanted_.torch.empty() || file_.torch_abi != "full") return;
    if (file_.torch_min.empty() && file_.torch_max.empty())
      return not_known(outcome_,
                       message("{}: its symbols do not show which torch it was built for", file_.path));
    for (const std::string& end : {file_.torch_min, file_.torch_max}) {
      if (end.empty() || wanted_.torch.contains(std::string_view(end)).value_or(false)) continue;
      return add("torch",
                 message("{} requires it to be built for torch {}, but its symbols are those of {}",
                         at("torch"), wanted_.torch.text(), end),
                 end == file_.torch_min ? "/built_for/torch_min" : "/built_for/torch_max", end);
    }
  }

  // The spec lists what the file must have at least; more is fine.
  void code() {
    std::vector<std::string> missing;
    for (const std::string& name : wanted_.code)
      if (std::ranges::find(file_.code, name) == file_.code.end()) missing.push_back(name);
    if (missing.empty()) return;
    add("code",
        file_.code.empty() ? message("{} requires code for {}, but the file contains no device code",
                                     at("code"), join(missing))
                           : message("{} requires code for {}, but the file contains {}", at("code"),
                                     join(missing), join(file_.code)),
        "", "");
  }

  const Spec& spec_;
  const ExtensionSpec& wanted_;
  const ExtensionFacts& file_;
  Outcome& outcome_;
};

// The extension was looked for and not found.
void not_here(const Spec& spec, const ExtensionSpec& wanted, Outcome& outcome) {
  Finding finding;
  finding.cause = Cause::DriftExtensionMissing;
  finding.subject = wanted.module;
  finding.module = wanted.module;
  const std::string path = "extensions." + wanted.module;
  finding.summary =
      message("{} requires it, but no file of it is on this Python's path", line_name(spec, path));
  finding.demanded_by = file_line(spec, path);
  const bool any_build = wanted.torch_abi.empty() || wanted.torch_abi == "none";
  if (checks::is_bundled_module(wanted.module) && any_build)
    finding.fixes = {InstallModule{wanted.module}};
  else if (!wanted.distribution.empty())
    finding.fixes = {InstallPackages{{requirement(wanted.distribution, wanted.version)}}};
  else
    finding.fixes = {
        Advice{message("install the package that provides {}, or remove it from the spec", wanted.module)}};
  drifted(outcome, std::move(finding));
}

// The package that imports a module of scankit's: installed, and of a version that the spec takes.
void check_package(const Spec& spec, const ExtensionSpec& wanted, const EnvironmentFacts& facts,
                   Outcome& outcome) {
  if (wanted.package.empty()) return;
  if (!facts.distributions.present() && facts.distributions.state != ProbeState::Absent)
    return not_known(outcome, why_missing(facts.distributions));
  const auto here = std::ranges::find_if(facts.distributions.value, [&](const Distribution& one) {
    return normalized_name(one.name) == normalized_name(wanted.package);
  });
  const bool there = here != facts.distributions.value.end();
  const VersionRange& range = wanted.package_version;
  if (there && (range.empty() || range.contains(std::string_view(here->version)).value_or(false))) return;
  const std::string path = "extensions." + wanted.module + (there ? ".package_version" : ".package");
  Finding finding;
  finding.cause = Cause::DriftExtension;
  finding.subject = wanted.package;
  finding.module = wanted.module;
  finding.summary = there ? message("{} requires {} {}, but found {}", line_name(spec, path), wanted.package,
                                    range.text(), here->version)
                          : message("{} requires the package {}, which is not installed",
                                    line_name(spec, path), wanted.package);
  finding.demanded_by = file_line(spec, path);
  const std::string line = range.empty() ? wanted.package : requirement(wanted.package, range);
  finding.fixes = {Advice{message("install it without its own build of the module: scankit fix --package {}",
                                  shell_quoted(line))}};
  drifted(outcome, std::move(finding));
}

}  // namespace

Outcome check_extension(const Spec& spec, const ExtensionSpec& wanted, const EnvironmentFacts& facts) {
  Outcome outcome =
      asked("spec-extension", message("Is {} installed, and built as the spec says?", wanted.module));
  if (!facts.extensions.present()) {
    not_known(outcome, why_missing(facts.extensions));
    return outcome;
  }
  const auto& all = facts.extensions.value;
  const auto file = std::ranges::find(all, wanted.module, &ExtensionFacts::module);
  if (file != all.end()) {
    ExtensionCheck(spec, wanted, *file, outcome).run();
  } else if (std::ranges::find(facts.modules, wanted.module) == facts.modules.end()) {
    not_known(outcome, message("the snapshot does not contain {}: take it with scankit snapshot --module {}",
                               wanted.module, wanted.module));
  } else {
    not_here(spec, wanted, outcome);
  }
  check_package(spec, wanted, facts, outcome);
  return outcome;
}

std::vector<Outcome> check_spec(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts) {
  std::vector<Outcome> out = check_platform(spec, facts);
  for (const ExtensionSpec& wanted : spec.extensions) out.push_back(check_extension(spec, wanted, facts));
  for (Outcome& outcome : check_gpus(spec, snapshot, facts)) out.push_back(std::move(outcome));
  return out;
}

}  // namespace scankit::envspec
