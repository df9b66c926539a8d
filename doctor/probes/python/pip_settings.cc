// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/pip_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

bool is_yes(std::string_view text) {  // as pip's strtobool
  constexpr std::array<std::string_view, 6> kYes = {"y", "yes", "t", "true", "on", "1"};
  return std::ranges::find(kYes, lowered(trimmed(text))) != kYes.end();
}

// The weakest first: machine, user, sys.prefix, PIP_CONFIG_FILE (pip/_internal/configuration.py). The value
// os.devnull of PIP_CONFIG_FILE makes pip load no file at all.
std::vector<std::string> config_files(const Host& host, const Python& python) {
  const std::string named = host.env("PIP_CONFIG_FILE").value_or("");
  if (named == "/dev/null") return {};
  std::vector<std::string> files;
  std::istringstream folders(host.env("XDG_CONFIG_DIRS").value_or("/etc/xdg"));
  for (std::string folder; std::getline(folders, folder, ':');)
    files.push_back(path_join(folder, "pip/pip.conf"));
  files.emplace_back("/etc/pip.conf");
  const std::string home = host.env("HOME").value_or(""), own = host.env("XDG_CONFIG_HOME").value_or("");
  if (!home.empty()) files.push_back(path_join(home, ".pip/pip.conf"));
  if (!own.empty() || !home.empty())
    files.push_back(path_join(own.empty() ? path_join(home, ".config") : own, "pip/pip.conf"));
  files.push_back(path_join(python.prefix, "pip.conf"));
  if (!named.empty()) files.push_back(named);
  return files;
}

struct Said {
  std::optional<bool> global, install;
};

// As far as configparser's format matters for one boolean: "=" and ":" separate, keys come in any case,
// sections do not, and an indented line continues the value before it.
Said user_key_of(const std::string& text) {
  Said said;
  std::istringstream lines(text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ';' || line[0] == ' ' || line[0] == '\t') continue;
    if (line[0] == '[') {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    const auto equals = line.find_first_of("=:");
    if (equals == std::string::npos || lowered(trimmed(line.substr(0, equals))) != "user") continue;
    if (section == "global") said.global = is_yes(line.substr(equals + 1));
    if (section == "install") said.install = is_yes(line.substr(equals + 1));
  }
  return said;
}

}  // namespace

// [install] in any file beats [global] in any other, so the two are kept apart until all files are read.
std::string pip_user_setting(const Host& host, const Python& python) {
  if (const auto variable = host.env("PIP_USER"); variable && !variable->empty())
    return is_yes(*variable) ? "$PIP_USER" : "";
  constexpr std::size_t kLimit = 1u << 20;
  std::string global, install;  // the file that says yes
  std::optional<bool> decided;
  for (const std::string& file : config_files(host, python)) {
    const auto text = host.read_file(file, kLimit);
    const Said said = text ? user_key_of(*text) : Said{};
    if (said.global) global = *said.global ? file : "";
    if (said.install) decided = said.install, install = *said.install ? file : "";
  }
  return decided ? install : global;
}

}  // namespace scankit
