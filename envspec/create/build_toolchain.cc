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

std::string in_words(const Toolkit& toolkit) {
  return fmt::format("{} ({})", toolkit.version.empty() ? "?" : toolkit.version, toolkit.root);
}

void add_difference(std::vector<std::string>& lines, const char* what, const std::vector<std::string>& locked,
                    const std::vector<std::string>& here) {
  if (locked.empty() || here.empty() || locked == here) return;
  lines.push_back(fmt::format("{} {} -> {}", what, join(locked), join(here)));
}

}  // namespace

Result<void> check_toolchain(const EnvironmentLock& lock, const std::vector<SourceBuild>& builds,
                             const Snapshot& here) {
  const auto with_code = with_device_code(lock, builds);
  const bool known = here.toolkits.state == ProbeState::Present || here.toolkits.state == ProbeState::Absent;
  if (with_code.empty() || !known || brings_nvcc(lock)) return {};
  std::vector<std::string> needing;
  for (const LockedDistribution* one : with_code) needing.push_back(with_toolchain(*one));
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
  if (std::ranges::any_of(here.toolkits.value, [&](const Toolkit& one) { return serves(one, lock); }))
    return {};
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
