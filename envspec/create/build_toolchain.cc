// SPDX-License-Identifier: Apache-2.0
// By what a package was built that is built again, and by what it can be here: asked before anything is made, and said of
// what was made. A lock binds nobody to a compiler, but nobody should have to guess why the bytes differ.
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "envspec/create/create.h"
#include "envspec/export/export.h"

namespace scankit::envspec {
namespace {

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

// "causal-conv1d==1.6.1 (nvcc 13.0.88, sm_90)"
std::string with_toolchain(const LockedDistribution& one) {
  const LockedToolchain& by = one.build->toolchain;
  std::vector<std::string> words;
  if (!by.nvcc.empty()) words.push_back(fmt::format("nvcc {}", join(by.nvcc)));
  words.push_back(join(by.code));
  return fmt::format("{}=={} ({})", one.name, one.version, join(words));
}

// The builds with device code; a build without it needs no nvcc.
std::vector<const LockedDistribution*> with_device_code(const EnvironmentLock& lock,
                                                        const std::vector<SourceBuild>& builds) {
  std::vector<const LockedDistribution*> found;
  for (const SourceBuild& build : builds)
    if (const LockedDistribution* one = find_locked(lock, build.name);
        one != nullptr && one->build && !one->build->toolchain.code.empty())
      found.push_back(one);
  return found;
}

// conda's and pip's packages of nvcc come with the environment: what is here now is not what will build.
bool brings_nvcc(const EnvironmentLock& lock) {
  return std::ranges::any_of(lock.conda_packages,
                             [](const CondaPackage& one) { return one.name.starts_with("cuda-nvcc"); }) ||
         std::ranges::any_of(lock.distributions, [&lock](const LockedDistribution& one) {
           // Those of CUDA 11 and 12 have ptxas, but not nvcc.
           return one.name == "nvidia-cuda-nvcc" &&
                  (!lock.torch || major_of(one.version) == major_of(lock.torch->cuda));
         });
}

// torch's cpp_extension refuses an nvcc of another major version than its own CUDA.
bool serves(const Toolkit& toolkit, const EnvironmentLock& lock) {
  return !lock.torch || lock.torch->cuda.empty() || toolkit.version.empty() ||
         major_of(toolkit.version) == major_of(lock.torch->cuda);
}

// Where torch's cpp_extension looks before anywhere else.
std::string chosen_home(const Snapshot& here, std::string& variable) {
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const auto value = here.environment.find(name);
        value != here.environment.end() && !value->second.empty()) {
      variable = name;
      return value->second;
    }
  return "";
}

std::string in_words(const Toolkit& toolkit) {
  return fmt::format("{} ({})", toolkit.version.empty() ? "?" : toolkit.version, toolkit.root);
}

Message not_known(const std::string& root, const std::string& builds) {
  return message("the CUDA release of {} is not known: whether it builds {} will be seen", root, builds);
}

// What CUDA_HOME names, whatever else is installed: an Error where no nvcc is there or one of another major release than
// torch's, a note where its release is not known. `cuda`: what is needed. Nothing where the variable is not set.
std::optional<Result<std::vector<Message>>> check_home(const EnvironmentLock& lock, const Snapshot& here,
                                                       const std::string& cuda, const std::string& builds) {
  std::string variable;
  const std::string home = chosen_home(here, variable);
  if (home.empty()) return std::nullopt;
  const auto named = std::ranges::find(here.toolkits.value, home, &Toolkit::root);
  const bool there = named != here.toolkits.value.end();
  if (there && named->version.empty()) return std::vector{not_known(home, builds)};
  if (there && serves(*named, lock)) return std::vector<Message>();
  const auto right = std::ranges::find_if(
      here.toolkits.value, [&](const Toolkit& one) { return serves(one, lock) && !one.version.empty(); });
  return Error{Errc::NotFound,
               there ? message("{} names CUDA {}, and the locked torch {} builds with CUDA {} only", variable,
                               in_words(*named), lock.torch->version, major_of(lock.torch->cuda))
                     : message("{} is {}, where bin/nvcc was not found, and {} must be built with it",
                               variable, home, builds),
               right == here.toolkits.value.end()
                   ? message("install the CUDA {} toolkit and set {} to its directory", cuda, variable)
                   : message("export {}={}", variable, shell_quoted(right->root))};
}

void add_difference(std::vector<std::string>& lines, const char* what, const std::vector<std::string>& locked,
                    const std::vector<std::string>& here) {
  if (locked.empty() || here.empty() || locked == here) return;
  lines.push_back(fmt::format("{} {} -> {}", what, join(locked), join(here)));
}

}  // namespace

Result<std::vector<Message>> check_toolchain(const EnvironmentLock& lock,
                                             const std::vector<SourceBuild>& builds, const Snapshot& here) {
  const auto with_code = with_device_code(lock, builds);
  const bool known = here.toolkits.state == ProbeState::Present || here.toolkits.state == ProbeState::Absent;
  std::vector<Message> notes;
  if (with_code.empty() || brings_nvcc(lock)) return notes;
  std::vector<std::string> needing;
  for (const LockedDistribution* one : with_code) needing.push_back(with_toolchain(*one));
  if (!known) {
    notes.push_back(message("whether an nvcc for {} is installed is not known: {}", first_lines(needing),
                            why_missing(here.toolkits)));
    return notes;
  }
  const std::string cuda = lock.torch && !lock.torch->cuda.empty()
                               ? lock.torch->cuda
                               : join(with_code.front()->build->toolchain.cuda);
  Message next = message(
      "install the CUDA {} toolkit and set CUDA_HOME to its directory; or run scankit env export "
      "requirements --out requirements.txt where the lock was made, and put {} next to the lock",
      cuda, kWheelFolder);
  if (here.toolkits.value.empty())
    return Error{Errc::NotFound,
                 message_n(needing.size(),
                           "{0} package with CUDA code must be built again, and nvcc was not found: {1}",
                           "{0} packages with CUDA code must be built again, and nvcc was not found: {1}",
                           needing.size(), first_lines(needing)),
                 std::move(next)};
  if (auto of_home = check_home(lock, here, cuda, first_lines(needing))) return *std::move(of_home);
  if (std::ranges::any_of(here.toolkits.value,
                          [&](const Toolkit& one) { return serves(one, lock) && !one.version.empty(); }))
    return notes;
  const auto unknown = std::ranges::find(here.toolkits.value, "", &Toolkit::version);
  if (unknown != here.toolkits.value.end()) {
    notes.push_back(not_known(unknown->root, first_lines(needing)));
    return notes;
  }
  std::vector<std::string> found;
  for (const Toolkit& one : here.toolkits.value) found.push_back(in_words(one));
  return Error{Errc::NotFound,
               message("no nvcc of CUDA {} was found, which torch {} needs to build {}; found: {}",
                       major_of(cuda), lock.torch->version, first_lines(needing), first_lines(found)),
               std::move(next)};
}

std::string toolchain_differences(const LockedBuild& locked, const LockedToolchain& here,
                                  const std::string& torch) {
  const LockedToolchain& by = locked.toolchain;
  std::vector<std::string> lines;
  add_difference(lines, "compiler", by.compilers, here.compilers);
  if (by.nvcc.empty() || here.nvcc.empty())
    add_difference(lines, "CUDA", by.cuda, here.cuda);
  else
    add_difference(lines, "nvcc", by.nvcc, here.nvcc);
  add_difference(lines, "device code", by.code, here.code);
  if (locked.recorded && !locked.recorded->torch.empty() && !torch.empty())
    add_difference(lines, "torch", {locked.recorded->torch}, {torch});
  if (!by.generator.empty() && !here.generator.empty())
    add_difference(lines, "wheel generator", {by.generator}, {here.generator});
  return join(lines, "; ");
}

}  // namespace scankit::envspec
