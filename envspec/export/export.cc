// SPDX-License-Identifier: Apache-2.0
#include "envspec/export/export.h"

#include <algorithm>

#include "doctor/base/say.h"

// One function for each format; those of containers are in export_containers.cc, pixi's in export_pixi.cc.
// All of them pin exact versions with SHA-256 hashes and let the installer resolve no dependencies: the lock
// has every package.
namespace scankit::envspec {
namespace {

constexpr const char* kFirstLine = "Written by `scankit env export`";

}  // namespace

// After the sign of a comment, which is "#" or "//".
bool is_an_export(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return (line.starts_with("# ") || line.starts_with("// ")) && line.find(kFirstLine) < 4;
}

std::string comment_header(const EnvironmentLock& lock, const std::vector<std::string>& left_out,
                           const std::string& sign) {
  std::string text;
  for (const std::string& line : header_lines(lock)) text += sign + line + "\n";
  for (const std::string& line : left_out) text += sign + "LEFT OUT " + line + "\n";
  return text;
}

Installable installable(const EnvironmentLock& lock) {
  Installable all;
  for (const LockedDistribution& one : lock.distributions) {
    if (one.artifact)
      all.with_hash.push_back(&one);
    else
      all.left_out.push_back(one.name + "==" + one.version + ": " + one.why_no_artifact);
  }
  return all;
}

std::vector<const LockedDistribution*> built_here(const EnvironmentLock& lock) {
  std::vector<const LockedDistribution*> all;
  for (const LockedDistribution& one : lock.distributions)
    if (one.source == "here" && one.artifact) all.push_back(&one);
  return all;
}

// The driver and the string ABI cannot be pinned by an installer, so that a comment names them.
std::vector<std::string> header_lines(const EnvironmentLock& lock) {
  std::vector<std::string> lines = {std::string(kFirstLine) + " from scankit.lock; edit neither.",
                                    "Python " + lock.python.version + ", " + lock.machine.architecture +
                                        ", " + lock.machine.libc + " " + lock.machine.libc_version};
  if (lock.torch && !lock.torch->cuda.empty())
    lines.push_back("CUDA " + lock.torch->cuda + ", " + lock.torch->string_abi + " C++ string ABI" +
                    (lock.machine.driver.empty() ? "" : "; made with NVIDIA driver " + lock.machine.driver));
  return lines;
}

Result<Exported> export_lock(const EnvironmentLock& lock, const std::string& format) {
  if (format == "requirements") return export_requirements(lock);
  if (format == "pylock") return export_pylock(lock);
  if (format == "conda") return export_conda(lock);
  if (format == "pixi") return export_pixi(lock);
  if (format == "dockerfile") return export_dockerfile(lock);
  if (format == "apptainer") return export_apptainer(lock);
  if (format == "devcontainer") return export_devcontainer(lock);
  return Error{Errc::InvalidArgument, message("{} is not an export format", format),
               message("use requirements, pylock, conda, pixi, dockerfile, apptainer or devcontainer")};
}

// Wheels that were built here are found through --find-links, which pip and uv read relative to the
// requirements file; they take a relative path to a wheel relative to the current directory.
std::string requirement_line(const LockedDistribution& one) {
  return one.name + "==" + one.version + " \\\n    --hash=sha256:" + one.artifact->sha256 + "\n";
}

// pip's requirements file format. With --require-hashes every line needs a hash, and pip refuses any
// package that the file does not name; --no-deps keeps it from looking for one.
Exported export_requirements(const EnvironmentLock& lock) {
  const Installable all = installable(lock);
  Exported exported{"requirements.txt", comment_header(lock, all.left_out), all.left_out, {}};
  exported.text += "# pip install --no-deps --require-hashes -r requirements.txt\n";
  exported.text += "--require-hashes\n";
  if (!built_here(lock).empty()) exported.text += std::string("--find-links ") + kWheelFolder + "\n";
  for (const LockedDistribution* one : all.with_hash) {
    if (one->source == "here")
      exported.text += "# " + std::string(kWheelFolder) + "/" + one->artifact->file + "\n";
    exported.text += requirement_line(*one);
  }
  return exported;
}

namespace {

// A YAML scalar, in single quotes where it could be read as something else. Inside single quotes only the
// single quote itself is special, and is doubled.
std::string scalar(const std::string& text) {
  const bool plain =
      text.find_first_of(":#'\"{}[],&*!|>%@` ") == std::string::npos && !text.empty() && text[0] != '-';
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

}  // namespace

std::vector<std::string> channels_of(const EnvironmentLock& lock) {
  std::vector<std::string> channels;
  for (const CondaPackage& one : lock.conda_packages)
    if (!one.channel.empty() && one.channel != "pypi" &&
        std::ranges::find(channels, one.channel) == channels.end())
      channels.push_back(one.channel);
  if (channels.empty()) channels.emplace_back("conda-forge");
  return channels;
}

const CondaPackage* find_conda(const EnvironmentLock& lock, std::string_view name) {
  const auto found = std::ranges::find(lock.conda_packages, name, &CondaPackage::name);
  return found == lock.conda_packages.end() ? nullptr : &*found;
}

// As `conda env export` writes it: name=version=build, and below `pip` what pip installed. conda passes
// that list to pip as a requirements file, so that pip checks the hashes in it.
Exported export_conda(const EnvironmentLock& lock) {
  Exported exported{"environment.yml", "", {}, {}};
  for (const LockedDistribution& one : lock.distributions)
    if (!one.artifact && one.source != "conda")
      exported.left_out.push_back(one.name + "==" + one.version + ": " + one.why_no_artifact);
  std::string& text = exported.text;
  text = comment_header(lock, exported.left_out);
  text += "name: scankit\nchannels:\n";
  for (const std::string& channel : channels_of(lock)) text += "  - " + scalar(channel) + "\n";
  text += "dependencies:\n";
  for (const CondaPackage& one : lock.conda_packages)
    if (one.channel != "pypi") text += "  - " + scalar(one.name + "=" + one.version + "=" + one.build) + "\n";
  if (find_conda(lock, "python") == nullptr) text += "  - python=" + lock.python.version + "\n";
  std::string pip;
  for (const LockedDistribution& one : lock.distributions) {
    if (one.source == "conda" || !one.artifact) continue;
    const std::string file = "./" + std::string(kWheelFolder) + "/" + one.artifact->file;
    pip += "      - " +
           scalar((one.source == "here" ? file : one.name + "==" + one.version) +
                  " --hash=sha256:" + one.artifact->sha256) +
           "\n";
  }
  if (pip.empty()) return exported;
  if (find_conda(lock, "pip") == nullptr) text += "  - pip\n";
  text += "  - pip:\n" + pip;
  return exported;
}

// The values hold no quotation mark and no control byte; a backslash may come in a path.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

namespace {

bool is_wheel(const LockedDistribution& one) { return one.artifact->file.ends_with(".whl"); }

// 3.11.7 of the lock: any 3.11 runs the same wheels.
std::string minor_of(const std::string& version) {
  const auto first = version.find('.');
  return version.substr(0, first == std::string::npos ? first : version.find('.', first + 1));
}

// An inline table as PEP 751 defines it for a wheel or an sdist.
std::string file_of(const LockedDistribution& one) {
  const LockedArtifact& artifact = *one.artifact;
  std::string table = "{name = " + toml_string(artifact.file);
  if (one.source == "here")
    table += ", path = " + toml_string(std::string(kWheelFolder) + "/" + artifact.file);
  else
    table += ", url = " + toml_string(artifact.url);
  if (artifact.size > 0) table += ", size = " + std::to_string(artifact.size);
  return table + ", hashes = {sha256 = " + toml_string(artifact.sha256) + "}}";
}

}  // namespace

// pylock.toml, lock-version 1.0 of PEP 751.
Exported export_pylock(const EnvironmentLock& lock) {
  Installable all = installable(lock);
  // PEP 751 demands a URL or a path for each file, and a lock may know only the hash.
  std::erase_if(all.with_hash, [&](const LockedDistribution* one) {
    const bool nowhere = one->source != "here" && one->artifact->url.empty();
    if (nowhere)
      all.left_out.push_back(one->name + "==" + one->version + ": " + say("no URL of its file is known"));
    return nowhere;
  });
  Exported exported{"pylock.toml", comment_header(lock, all.left_out), all.left_out, {}};
  const std::string minor = minor_of(lock.python.version);
  exported.text += "lock-version = \"1.0\"\ncreated-by = \"scankit\"\nrequires-python = " +
                   toml_string("==" + minor + ".*") + "\n";
  for (const LockedDistribution* one : all.with_hash)
    exported.text +=
        "\n[[packages]]\nname = " + toml_string(one->name) + "\nversion = " + toml_string(one->version) +
        (is_wheel(*one) ? "\nwheels = [" + file_of(*one) + "]\n" : "\nsdist = " + file_of(*one) + "\n");
  return exported;
}

}  // namespace scankit::envspec
