// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/installers.h"

#include <array>
#include <utility>

namespace scankit {
namespace {

constexpr const char* kAsked = "installer: asked";
constexpr std::array kFields{std::pair{"installer: uv", &Installers::uv},
                             std::pair{"installer: conda", &Installers::conda},
                             std::pair{"installer: base pip", &Installers::base_pip},
                             std::pair{"installer: ensurepip", &Installers::ensurepip},
                             std::pair{"installer: site", &Installers::site},
                             std::pair{"installer: owner", &Installers::owner},
                             std::pair{"installer: pip user", &Installers::pip_user}};

}  // namespace

std::string pip_prefix(const Installers& here, const Python& python) {
  return here.pip_user.empty() || python.prefix == python.base_prefix ? "" : "PIP_USER=0 ";
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
