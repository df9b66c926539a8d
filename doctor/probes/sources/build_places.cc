// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/probes/sources/sources.h"

namespace scankit {
namespace {

// tempfile.gettempdir() of Python, and so pip's: the first of these that is a folder.
std::string temporary_folder(const Host& host) {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"})
    if (const auto folder = host.env(name); folder && !folder->empty() && host.is_directory(*folder))
      return *folder;
  return "/tmp";
}

void add_place(std::vector<BuildPlace>& places, std::string role, const std::string& path) {
  struct ::statvfs system {};
  struct ::stat info {};
  if (path.empty() || ::statvfs(path.c_str(), &system) != 0 || ::stat(path.c_str(), &info) != 0) return;
  places.push_back({std::move(role), path, std::uint64_t{system.f_bavail} * system.f_frsize,
                    static_cast<std::uint64_t>(info.st_dev)});
}

}  // namespace

std::vector<BuildPlace> build_places(const Host& host, const Snapshot& snapshot) {
  std::vector<BuildPlace> places;
  if (!host.is_live()) return places;
  add_place(places, "sources", snapshot.sources.value.folder);
  add_place(places, "temporary files", temporary_folder(host));
  const auto& path = snapshot.python.value.sys_path;
  const auto site = std::ranges::find_if(
      path, [](const PathEntry& entry) { return entry.origin == "site" && entry.exists; });
  if (site != path.end()) add_place(places, "site-packages", site->path);
  return places;
}

}  // namespace scankit
