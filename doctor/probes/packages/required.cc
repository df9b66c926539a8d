// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/required.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

constexpr std::size_t kFewFiles = 200;  // of a RECORD: one that is there is enough

const Distribution* distribution_of(const Snapshot& snapshot, const std::string& name) {
  const auto& all = snapshot.distributions.value;
  const auto found = std::ranges::find_if(
      all, [&](const Distribution& each) { return normalized_name(each.name) == normalized_name(name); });
  return found == all.end() ? nullptr : &*found;
}

// pkg.part below the folder of pkg: a folder, a source file, or a compiled one.
bool holds_part(const Host& host, const Python& python, const std::string& folder, const std::string& part) {
  const std::string place = path_join(folder, part);
  if (host.is_directory(place) || is_regular_file(host, place + ".py")) return true;
  return std::ranges::any_of(python.extension_suffixes, [&](const std::string& suffix) {
    return is_regular_file(host, place + suffix);
  });
}

std::optional<std::string> module_path(const Host& host, const Python& python, const std::string& name) {
  const auto dot = name.find('.');
  const auto found = find_python_module(host, python, name.substr(0, dot));
  if (!found || found->leftover) return std::nullopt;
  if (dot == std::string::npos) return found->path;
  std::string part = name.substr(dot + 1);
  std::ranges::replace(part, '.', '/');
  if (!found->package || !holds_part(host, python, found->path, part)) return std::nullopt;
  return found->path;
}

// A distribution of which nothing but the metadata is left is not installed. Without a RECORD (conda, Debian)
// its metadata is all there is to go by.
bool has_files(const Host& host, const Distribution& distribution) {
  if (distribution.editable) return true;
  const auto record = host.read_file(path_join(distribution.path, "RECORD"));
  if (!record) return true;
  const std::string site = path_dirname(distribution.path), own = path_basename(distribution.path) + "/";
  std::size_t looked_at = 0;
  for (const std::string_view line : lines_of(*record)) {
    const std::string file(line.substr(0, line.find(',')));
    if (file.empty() || file.starts_with(own) || file.starts_with('"')) continue;
    if (host.exists(path_join(site, file))) return true;
    if (++looked_at >= kFewFiles) break;
  }
  return looked_at == 0;
}

}  // namespace

std::vector<Requirement> probe_required(const Host& host, const Snapshot& so_far,
                                        const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  const Python& python = so_far.python.value;
  for (const std::string& name : names) {
    const Distribution* distribution = distribution_of(so_far, name);
    if (const auto path = module_path(host, python, name))
      required.push_back({name, "module", *path});
    else if (distribution != nullptr && has_files(host, *distribution))
      required.push_back({name, "distribution", distribution->path});
    else if (!unreadable_site_folders(host, python).empty())
      required.push_back({name, "not-read", ""});
    else
      required.push_back({name, "absent", distribution == nullptr ? "" : distribution->path});
  }
  return required;
}

std::vector<Requirement> unread_requirements(const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  for (const std::string& name : names) required.push_back({name, "not-read", ""});
  return required;
}

std::vector<Requirement> required_in(const Snapshot& snapshot, const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  for (const std::string& name : names) {
    const auto& modules = snapshot.extensions.value;
    const auto module = std::ranges::find_if(
        modules, [&](const Extension& file) { return file.module == name && file.selected; });
    if (name == "torch" && snapshot.torch.state == ProbeState::Absent)
      required.push_back({name, "absent", ""});
    else if (module != modules.end())
      required.push_back({name, "module", module->path});
    else if (const Distribution* distribution = distribution_of(snapshot, name))
      required.push_back({name, "distribution", distribution->path});
    else
      required.push_back({name, "not-read", ""});
  }
  return required;
}

}  // namespace scankit
