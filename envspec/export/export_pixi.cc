// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "envspec/export/export.h"

// pixi.toml: conda's packages with their hashes, and a task for pip's. pixi resolves [pypi-dependencies] without
// comparing a hash, also one that their URL has, so that only pip can hold them to the lock.
namespace scankit::envspec {
namespace {

// conda's name of Linux on that processor; "" where it has none.
std::string platform_of(const std::string& architecture) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {{{"x86_64", "linux-64"},
                                                                          {"aarch64", "linux-aarch64"},
                                                                          {"ppc64le", "linux-ppc64le"},
                                                                          {"riscv64", "linux-riscv64"},
                                                                          {"s390x", "linux-s390x"}}};
  for (const auto& [machine, platform] : kNames)
    if (architecture == machine) return platform;
  return "";
}

// A TOML key needs quotation marks where it has a dot ("ruamel.yaml").
std::string toml_key(const std::string& name) {
  return name.find('.') == std::string::npos ? name : toml_string(name);
}

std::string dependency(const CondaPackage& one) {
  std::string line = toml_key(one.name) + " = { version = " + toml_string("==" + one.version) +
                     ", build = " + toml_string(one.build);
  if (!one.channel.empty()) line += ", channel = " + toml_string(one.channel);
  if (!one.sha256.empty())
    line += ", sha256 = " + toml_string(one.sha256);
  else
    line += ", md5 = " + toml_string(one.md5);
  return line + " }\n";
}

// Without the packages that conda installs: pip gets the others.
EnvironmentLock without_conda(const EnvironmentLock& lock) {
  EnvironmentLock rest = lock;
  std::erase_if(rest.distributions, [](const LockedDistribution& one) { return one.source == "conda"; });
  return rest;
}

// What conda's packages may expect of the machine that solves, which may be one without a GPU.
std::string system_requirements(const EnvironmentLock& lock) {
  std::string text;
  if (lock.machine.libc == "glibc")
    text += "libc = { family = \"glibc\", version = " + toml_string(lock.machine.libc_version) + " }\n";
  const LockedDistribution* torch = find_locked(lock, "torch");
  if (lock.torch && !lock.torch->cuda.empty() && torch != nullptr && torch->source == "conda")
    text += "cuda = " + toml_string(lock.torch->cuda) + "\n";
  return text.empty() ? "" : "\n[system-requirements]\n" + text;
}

}  // namespace

Result<Exported> export_pixi(const EnvironmentLock& lock) {
  const std::string platform = platform_of(lock.machine.architecture);
  if (platform.empty())
    return Error{Errc::Unsupported,
                 message("pixi has no platform for the processor {}", lock.machine.architecture),
                 message("export requirements instead")};
  const EnvironmentLock by_pip = without_conda(lock);
  Exported requirements = export_requirements(by_pip);
  Exported exported{"pixi.toml", "", requirements.left_out, {}};
  std::string dependencies;
  for (const CondaPackage& one : lock.conda_packages) {
    if (one.channel == "pypi") continue;
    if (one.sha256.empty() && one.md5.empty())
      exported.left_out.push_back(one.name + "==" + one.version + ": " +
                                  english(message("conda-meta has no hash of it")));
    else
      dependencies += dependency(one);
  }
  if (find_conda(lock, "python") == nullptr)
    dependencies += "python = " + toml_string("==" + lock.python.version) + "\n";
  const bool has_pip = !installable(by_pip).with_hash.empty();
  if (has_pip && find_conda(lock, "pip") == nullptr) dependencies += "pip = \"*\"\n";
  std::string& text = exported.text;
  text = comment_header(lock, exported.left_out);
  if (has_pip) text += "# pixi run install\n";
  text += "[workspace]\nname = \"scankit\"\nchannels = [";
  for (const std::string& channel : channels_of(lock))
    text += (text.back() == '[' ? "" : ", ") + toml_string(channel);
  text += "]\nplatforms = [" + toml_string(platform) + "]\n\n[dependencies]\n" + dependencies +
          system_requirements(lock);
  if (!has_pip) return exported;
  text +=
      "\n# pip compares every hash; pixi would resolve these packages without.\n"
      "[tasks]\ninstall = \"python -m pip install --no-deps --require-hashes -r requirements.txt\"\n";
  exported.next_to.push_back({requirements.file_name, std::move(requirements.text)});
  return exported;
}

}  // namespace scankit::envspec
