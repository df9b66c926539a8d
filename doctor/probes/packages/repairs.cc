// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/repairs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/json_text.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

// The layout is builder/README.md's, and theirs to change: BASE/.scankit/journal/ID.json with "state" and
// "module", BASE/.scankit/lock with the process that holds it. BASE is the prefix, the user base, or a folder
// of --target, which is on the path.
std::set<std::string> bases(const Python& python) {
  std::set<std::string> folders{python.prefix};
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists || entry.origin == "stdlib" || entry.origin == "lib-dynload") continue;
    folders.insert(entry.path);
    // USERBASE/lib/pythonX.Y/site-packages
    if (entry.origin == "user-site") folders.insert(path_dirname(path_dirname(path_dirname(entry.path))));
  }
  folders.erase("");
  return folders;
}

bool holder_lives(const Host& host, const std::string& state_folder) {
  const auto text =
      host.is_live() ? host.read_file(path_join(state_folder, "lock"), 64) : Result<std::string>("");
  if (!text || text->empty() || text->find_first_not_of("0123456789\n") != std::string::npos) return false;
  return host.exists("/proc/" + text->substr(0, text->find('\n')));
}

// An environment travels, and brings the journals of whoever made it: `scankit restore` believes only what
// this user or root wrote, and nobody else could have. Of an image we see the owners of another machine.
bool is_own(const Host& host, const std::string& path, FileKind kind) {
  const auto info = host.lstat(path);
  if (!info || info->kind != kind) return false;
  if (!host.is_live()) return true;
  const unsigned user = ::geteuid();
  return (info->uid == user || info->uid == 0 || user == 0) && (info->mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_journal_name(const std::string& name) {
  const std::string id = name.substr(0, name.size() - 5);  // without .json
  return id.size() >= 4 && id.find_first_not_of("0123456789") == std::string::npos;
}

void read_journals(const Host& host, const std::string& base, std::vector<UnfinishedRepair>& found) {
  const std::string state_folder = path_join(base, ".scankit"), folder = path_join(state_folder, "journal");
  const auto entries = host.list(folder);
  if (!entries) return;
  const bool own_folder =
      is_own(host, state_folder, FileKind::Directory) && is_own(host, folder, FileKind::Directory);
  for (const DirEntry& entry : *entries) {
    if (!entry.name.ends_with(".json") || found.size() >= 20) continue;
    const std::string path = path_join(folder, entry.name);
    const auto text = host.read_file(path, 1u << 20);
    const Json json = text ? Json::parse(*text, nullptr, false) : Json();
    const std::string state = json.is_object() ? json_text(json, "state") : "";
    if (state == "committed" || state == "undone") continue;
    const bool own = own_folder && is_journal_name(entry.name) && is_own(host, path, FileKind::Regular);
    const bool known = own && (state == "applying" || state == "undoing");
    found.push_back({path, known ? state : "", known ? json_text(json, "module") : "",
                     known && holder_lives(host, state_folder)});
  }
}

}  // namespace

Probed<std::vector<UnfinishedRepair>> probe_repairs(const Host& host, const Python& python) {
  std::vector<UnfinishedRepair> found;
  for (const std::string& base : bases(python)) read_journals(host, base, found);
  if (!found.empty()) return Probed<std::vector<UnfinishedRepair>>::of(std::move(found));
  return Probed<std::vector<UnfinishedRepair>>::absent("no scankit fix was left unfinished");
}

}  // namespace scankit
