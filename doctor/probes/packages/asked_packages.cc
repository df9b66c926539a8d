// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/asked_packages.h"

#include <algorithm>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

// A dotted name is looked for in the package that its first part leads to.
std::optional<std::string> python_files_of(const Host& host, const Python& python, const std::string& name) {
  const auto dot = name.find('.');
  const auto top = find_python_module(host, python, name.substr(0, dot));
  if (!top || top->leftover) return std::nullopt;
  if (dot == std::string::npos) return top->path;
  std::string rest = name.substr(dot + 1);
  std::ranges::replace(rest, '.', '/');
  const std::string path = path_join(top->path, rest);
  if (host.is_directory(path)) return path;
  const std::string file = path + ".py";
  return host.stat(file) ? std::optional(file) : std::nullopt;
}

}  // namespace

std::vector<AskedPackage> find_asked_packages(const Host& host, const Snapshot& so_far) {
  std::vector<AskedPackage> found;
  for (const std::string& name : so_far.modules_asked) {
    const bool compiled = std::ranges::any_of(
        so_far.extensions.value, [&](const Extension& copy) { return copy.module == name && copy.selected; });
    if (compiled) continue;
    if (const auto path = python_files_of(host, so_far.python.value, name)) found.push_back({name, *path});
  }
  return found;
}

}  // namespace scankit
