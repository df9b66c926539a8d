// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "envspec/export/export.h"

namespace scankit {
namespace {

// A YAML flow scalar in single quotes where it could be read as something else.
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

// In the order of their first package; `conda env export` writes them by priority, which the records do not
// tell. An environment that conda did not make gets the channel that has every Python.
std::vector<std::string> channels_of(const EnvironmentLock& lock) {
  std::vector<std::string> channels;
  for (const CondaPackage& one : lock.conda_packages)
    if (!one.channel.empty() && one.channel != "pypi" &&
        std::ranges::find(channels, one.channel) == channels.end())
      channels.push_back(one.channel);
  if (channels.empty()) channels.emplace_back("conda-forge");
  return channels;
}

}  // namespace

// As `conda env export` writes it: name=version=build, and below `pip` what pip installed. conda hands that
// list to pip as a requirements file, so that pip demands the hashes in it.
Exported export_conda(const EnvironmentLock& lock) {
  Exported exported{"environment.yml", "", {}};
  for (const LockedDistribution& one : lock.distributions)
    if (!one.artifact && one.source != "conda")
      exported.left_out.push_back(one.name + "==" + one.version + ": " + one.why_no_artifact);
  std::string& text = exported.text;
  for (const std::string& line : header_lines(lock)) text += "# " + line + "\n";
  for (const std::string& line : exported.left_out) text += "# LEFT OUT " + line + "\n";
  text += "name: scankit\nchannels:\n";
  for (const std::string& channel : channels_of(lock)) text += "  - " + scalar(channel) + "\n";
  text += "dependencies:\n";
  for (const CondaPackage& one : lock.conda_packages)
    if (one.channel != "pypi") text += "  - " + scalar(one.name + "=" + one.version + "=" + one.build) + "\n";
  const auto is = [](const char* name) {
    return [name](const CondaPackage& one) { return one.name == name; };
  };
  if (std::ranges::none_of(lock.conda_packages, is("python")))
    text += "  - python=" + lock.python.version + "\n";
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
  if (std::ranges::none_of(lock.conda_packages, is("pip"))) text += "  - pip\n";
  text += "  - pip:\n" + pip;
  return exported;
}

}  // namespace scankit
