// SPDX-License-Identifier: Apache-2.0
// What makes pip and uv install somewhere else than into the environment that they are told: variables and
// settings for another purpose (a folder of AWS Lambda, a package of a distribution). The user's index settings
// are in the same files, so that these cannot be switched off as a whole (`--isolated`, `--no-config`).
#include <algorithm>

#include "builder/installer/installer.h"
#include "builder/installer/settings.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/distributions.h"

extern char** environ;

namespace scankit::installer {
namespace {

constexpr std::size_t kMostSettings = 1u << 20;

// Finds a place in the text of a settings file, "[install] target"; "" where it has none.
using SettingsReader = std::string (*)(const std::string& text);
std::string of_pip(const std::string& text) { return place_in_ini(text, {"install", "global", "DEFAULT"}); }
std::string of_uv(const std::string& text) { return place_in_toml(text, {"pip"}); }
std::string of_project(const std::string& text) { return place_in_toml(text, {"tool", "uv", "pip"}); }

// What cannot be read may say anything, except for what is not there and for a link to /dev/null.
Result<void> check_file(const Host& host, const std::string& file, SettingsReader place_in) {
  const auto text = host.read_file(file, kMostSettings);
  if (!text) {
    if (text.error().code == Errc::NotFound || host.realpath(file).value_or("") == "/dev/null") return {};
    return Error{text.error().code,
                 message("{} cannot be checked for settings that make packages go somewhere else: {}", file,
                         text.error().message),
                 message("move it away for this command, or make it a file that can be read")};
  }
  const std::string place = place_in(*text);
  if (place.empty()) return {};
  return Error{Errc::InvalidArgument,
               message("{} of {} makes packages go somewhere else than into the environment", place, file),
               message("take the setting out of {} for this command", file)};
}

// The user's file and the machine's. uv takes the first of the latter; which one that is may change.
Result<void> check_uv_of_user(const Host& host) {
  const auto or_else = [&](const char* name, const std::string& other) {
    const std::string value = host.env(name).value_or("");
    return value.empty() ? other : value;
  };
  std::vector<std::string> folders = split_nonempty(or_else("XDG_CONFIG_DIRS", "/etc/xdg"), ":");
  folders.push_back(or_else("XDG_CONFIG_HOME", path_join(host.env("HOME").value_or(""), ".config")));
  folders.emplace_back("/etc");
  for (const std::string& folder : folders)
    SCANKIT_CHECK(check_file(host, path_join(folder, "uv/uv.toml"), of_uv));
  return {};
}

// uv looks for the project's settings from `start` upwards, and ends at a file by rules that depend on its release
// (a workspace, what the file says of uv). So none of them may name a place.
Result<void> check_uv(const Host& host, const std::string& start) {
  if (const std::string named = host.env("UV_CONFIG_FILE").value_or(""); !named.empty())
    return check_file(host, path_join(current_directory(), named), of_uv);
  if (probes::is_yes(host.env("UV_NO_CONFIG").value_or(""))) return {};
  SCANKIT_CHECK(check_uv_of_user(host));
  for (std::string folder = start; !folder.empty(); folder = path_dirname(folder)) {
    SCANKIT_CHECK(check_file(host, path_join(folder, "uv.toml"), of_uv));
    SCANKIT_CHECK(check_file(host, path_join(folder, "pyproject.toml"), of_project));
    if (folder == "/") break;
  }
  return {};
}

}  // namespace

Result<void> check_not_diverted(const Host& host, const Python& python, const Installer& installer) {
  if (installer.kind == Installer::Kind::Uv)
    return check_uv(host, installer.project.empty() ? current_directory() : installer.project);
  if (installer.kind != Installer::Kind::Pip) return {};
  for (const std::string& file : probes::pip_config_files(host, python))
    SCANKIT_CHECK(check_file(host, file, of_pip));
  return {};
}

std::vector<std::string> variables_of(const InstallerCommand& command) {
  constexpr std::array<std::string_view, 4> kPaths = {"PIP_CONFIG_FILE", "PIP_CONSTRAINT", "PIP_FIND_LINKS",
                                                      "PIP_CERT"};
  std::vector<std::string> all = command.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    const std::string name = entry.substr(0, entry.find('=')), value = entry.substr(entry.find('=') + 1);
    const bool replaced = std::ranges::any_of(
        command.environment, [&](const std::string& own) { return own.starts_with(name + "="); });
    if (replaced || std::ranges::find(kPlaceVariables, name) != kPlaceVariables.end()) continue;
    const bool relative =
        !value.empty() && value[0] != '/' && value[0] != '~' && value.find(':') == std::string::npos;
    all.push_back(relative && std::ranges::find(kPaths, name) != kPaths.end()
                      ? name + "=" + path_join(current_directory(), value)
                      : entry);
  }
  return all;
}

}  // namespace scankit::installer
