// SPDX-License-Identifier: Apache-2.0
// What makes pip and uv install somewhere else than into the environment that they are told: variables and
// settings for another purpose (a folder of AWS Lambda, a package of a distribution). The user's index settings
// are in the same files, so that these cannot be switched off as a whole (`--isolated`, `--no-config`).
#include <string_view>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/distributions.h"

namespace scankit::installer {
namespace {

constexpr std::size_t kMostSettings = 1u << 20;

bool is_a_place(std::string_view key) { return key == "target" || key == "prefix" || key == "root"; }

// As TOML and configparser write it: the table in brackets, keys with dots. Indented lines are keys of TOML.
// `tables`: those that install commands read. Returns "[install] prefix", or "".
std::string place_in(const std::string& text, const std::vector<std::string>& tables) {
  std::string table;
  for (const std::string_view raw : lines_of(text)) {
    const std::string_view line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      table = trimmed(line.substr(1, line.find(']') - 1));
      continue;
    }
    const auto equals = line.find_first_of("=:");
    if (equals == std::string_view::npos) continue;
    const std::string_view value = trimmed(line.substr(equals + 1));
    std::string name = (table.empty() ? "" : table + ".") + std::string(trimmed(line.substr(0, equals)));
    for (const std::string& one : tables) {
      if (name == one && value.starts_with('{'))  // a table in one line: any of its keys may be meant
        for (const std::string_view key : {"target", "prefix"})
          if (value.find(key) != std::string_view::npos) return fmt::format("[{}] {}", one, key);
      if (!name.starts_with(one + ".") || value.empty() || value == "\"\"") continue;
      if (const std::string key = lowered(name.substr(one.size() + 1)); is_a_place(key))
        return fmt::format("[{}] {}", one, key);
    }
  }
  return "";
}

Result<void> check_file(const Host& host, const std::string& file, const std::vector<std::string>& tables) {
  const auto text = host.read_file(file, kMostSettings);
  const std::string place = text ? place_in(*text, tables) : "";
  if (place.empty()) return {};
  return Error{Errc::InvalidArgument,
               message("{} of {} makes packages go somewhere else than into the environment", place, file),
               message("take the setting out of {} for this command", file)};
}

// Of the project, the nearest file counts alone: uv.toml, or a pyproject.toml that speaks of uv. uv looks for it from
// `start` upwards.
Result<void> check_uv(const Host& host, const std::string& start) {
  const std::vector<std::string> own = {"pip"}, project = {"tool.uv.pip"};
  if (const std::string named = host.env("UV_CONFIG_FILE").value_or(""); !named.empty())
    return check_file(host, path_join(current_directory(), named), own);
  if (!host.env("UV_NO_CONFIG").value_or("").empty()) return {};
  const std::string home = host.env("HOME").value_or("");
  const std::string settings = host.env("XDG_CONFIG_HOME").value_or(path_join(home, ".config"));
  SCANKIT_CHECK(check_file(host, path_join(settings, "uv/uv.toml"), own));
  SCANKIT_CHECK(check_file(host, "/etc/uv/uv.toml", own));
  for (std::string folder = start; !folder.empty(); folder = path_dirname(folder)) {
    const std::string toml = path_join(folder, "uv.toml"), python = path_join(folder, "pyproject.toml");
    if (host.exists(toml)) return check_file(host, toml, own);
    const auto text = host.read_file(python, kMostSettings);
    if (text && text->find("tool.uv") != std::string::npos) return check_file(host, python, project);
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
    SCANKIT_CHECK(check_file(host, file, {"install", "global"}));
  return {};
}

}  // namespace scankit::installer
