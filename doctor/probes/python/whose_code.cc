// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/whose_code.h"

#include <unistd.h>

#include <vector>

#include "doctor/base/files.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

std::optional<ForeignCode> first_foreign(const Host& host, const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (auto foreign = foreign_to_root(host, path)) return foreign;
  return std::nullopt;
}

// What site.py runs at every start: lines of .pth files, and the modules sitecustomize and usercustomize.
bool runs_at_start(const std::string& name) {
  return name.ends_with(".pth") || name == "sitecustomize.py" || name == "usercustomize.py";
}

}  // namespace

std::optional<ForeignCode> foreign_to_root(const Host& host, const std::string& path) {
  if (::geteuid() != 0 || path.empty()) return std::nullopt;
  const auto info = host.stat(path);
  if (!info || info->uid == 0) return std::nullopt;
  return ForeignCode{path, info->uid};
}

std::optional<ForeignCode> foreign_code(const Host& host, const Python& python) {
  if (::geteuid() != 0) return std::nullopt;
  std::vector<std::string> paths = {python.requested, python.executable, python.prefix};
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists) continue;
    paths.push_back(entry.path);
    if (const auto entries = host.list(entry.path))
      for (const DirEntry& file : *entries)
        if (runs_at_start(file.name)) paths.push_back(path_join(entry.path, file.name));
  }
  return first_foreign(host, paths);
}

std::optional<ForeignCode> foreign_code(const Host& host, const Snapshot& snapshot) {
  if (auto foreign = foreign_code(host, snapshot.python.value)) return foreign;
  std::vector<std::string> paths;
  if (snapshot.torch.present()) paths.push_back(snapshot.torch.value.location);
  for (const Extension& file : snapshot.extensions.value)
    if (file.selected) paths.push_back(file.path);
  for (const PackageFound& package : snapshot.packages.value.found) paths.push_back(package.path);
  // A module may be a Python file as well: an import runs whatever has the name.
  std::vector<std::string> names = snapshot.modules;
  names.emplace_back("torch");
  for (const std::string& name : names)
    if (const auto found = find_python_module(host, snapshot.python.value, name)) {
      paths.push_back(found->path);
      if (found->package) paths.push_back(path_join(found->path, "__init__.py"));
    }
  return first_foreign(host, paths);
}

}  // namespace scankit
