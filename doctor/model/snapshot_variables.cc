// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/snapshot_variables.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "doctor/base/text.h"

namespace scankit {
namespace {

constexpr const char* kScope = "scankit.audit";

std::string text_of(const Snapshot& snapshot, const char* name) {
  const auto found = snapshot.environment.find(name);
  return found == snapshot.environment.end() ? "" : found->second;
}

// A tab and a line's end part the fields; a name or path that holds one would be read as two.
std::string one_field(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

void set_requirements(Snapshot& snapshot, const std::vector<Requirement>& required) {
  std::string text;
  for (const Requirement& each : required)
    text += one_field(each.name) + "\t" + each.found + "\t" + one_field(each.path) + "\n";
  if (!text.empty()) snapshot.environment[kRequired] = text;
}

std::vector<Requirement> requirements(const Snapshot& snapshot) {
  std::vector<Requirement> required;
  std::istringstream lines(text_of(snapshot, kRequired));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Requirement each;
    std::getline(fields, each.name, '\t');
    std::getline(fields, each.found, '\t');
    std::getline(fields, each.path);
    required.push_back(std::move(each));
  }
  return required;
}

void set_audit_of_linked(Snapshot& snapshot) { snapshot.environment[kScope] = "linked"; }

bool audit_of_linked(const Snapshot& snapshot) { return text_of(snapshot, kScope) == "linked"; }

bool nothing_to_check(const Snapshot& snapshot) {
  const bool another_object = snapshot.log.present() || !snapshot.named_files.empty() ||
                              !snapshot.wheels.empty() || !requirements(snapshot).empty() ||
                              (snapshot.sources.present() && snapshot.sources.value.asked);
  if (another_object || !snapshot.python.present() || snapshot.torch.state != ProbeState::Absent)
    return false;
  const bool a_module = std::ranges::any_of(snapshot.extensions.value, &Extension::selected);
  const bool an_extension = std::ranges::any_of(
      snapshot.audit.value.files, [](const AuditedFile& file) { return file.not_for_this_python.empty(); });
  return !a_module && !an_extension;
}

namespace {

constexpr const char* kAsked = "installer: asked";
constexpr std::array kFields{std::pair{"installer: uv", &Installers::uv},
                             std::pair{"installer: conda", &Installers::conda},
                             std::pair{"installer: base pip", &Installers::base_pip},
                             std::pair{"installer: ensurepip", &Installers::ensurepip},
                             std::pair{"installer: site", &Installers::site},
                             std::pair{"installer: owner", &Installers::owner},
                             std::pair{"installer: pip user", &Installers::pip_user},
                             std::pair{"installer: pip hidden", &Installers::pip_hidden}};

}  // namespace

std::string pip_folder(const Installers& here) { return here.pip_hidden.empty() ? "" : "cd / && "; }

std::string pip_prefix(const Installers& here, const Python& python) {
  return here.pip_user.empty() || python.prefix == python.base_prefix ? "" : "PIP_USER=0 ";
}

std::string conda_word(const Installers& here) {
  return here.conda.empty() ? "conda" : shell_quoted(here.conda);
}

Installers installers_of(const Snapshot& snapshot) {
  Installers found;
  found.known = snapshot.environment.contains(kAsked);
  for (const auto& [name, field] : kFields)
    if (const auto entry = snapshot.environment.find(name); entry != snapshot.environment.end())
      found.*field = entry->second;
  return found;
}

void set_installers(Snapshot& snapshot, const Installers& found) {
  snapshot.environment[kAsked] = "yes";
  for (const auto& [name, field] : kFields) {
    snapshot.environment.erase(name);
    if (!(found.*field).empty()) snapshot.environment[name] = found.*field;
  }
}

}  // namespace scankit
