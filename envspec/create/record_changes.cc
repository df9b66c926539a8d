// SPDX-License-Identifier: Apache-2.0
// An environment against its record: a stat(2) for each compiled file and each package, and one list of
// site-packages. An edited Python source is not seen: that would be a stat(2) for each of 20 000 files.
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/host/host.h"
#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

bool is_metadata(const std::string& folder) {
  return folder.ends_with(".dist-info") || folder.ends_with(".egg-info");
}

// "numpy" and "2.1.0" of "numpy-2.1.0.dist-info", "2.1.0-py3.11.egg-info" as far as the version goes.
std::pair<std::string, std::string> name_and_version(const std::string& folder) {
  const std::string stem = folder.substr(0, folder.rfind('.'));
  const auto dash = stem.find('-');
  if (dash == std::string::npos) return {normalized_name(stem), ""};
  return {normalized_name(stem.substr(0, dash)), stem.substr(dash + 1, stem.find('-', dash + 1) - dash - 1)};
}

void compare_files(const Host& host, const std::string& site, const EnvironmentRecord& record,
                   std::vector<RecordChange>& changes) {
  for (const RecordedFile& one : record.libraries) {
    const auto info = host.stat(path_join(site, one.path));
    if (!info)
      changes.push_back({RecordChange::Kind::FileMissing, one.path, "", ""});
    else if (info->size != one.size || info->mtime_ns != one.mtime_ns)
      changes.push_back({RecordChange::Kind::FileChanged, one.path, "", ""});
  }
}

// A package whose directory of metadata is gone is another version where a new directory has its name.
Result<void> compare_packages(const Host& host, const std::string& site, const EnvironmentRecord& record,
                              std::vector<RecordChange>& changes) {
  std::map<std::string, std::string> fresh;  // by name: the version of what the record does not have
  const auto listed = host.list(site);
  // A site-packages that is gone has none of the packages, which is a difference.
  if (!listed && listed.error().code != Errc::NotFound) return listed.error();
  if (listed)
    for (const DirEntry& entry : *listed) {
      const bool known =
          std::ranges::find(record.packages, entry.name, &RecordedPackage::metadata) != record.packages.end();
      if (is_metadata(entry.name) && !known) fresh.insert(name_and_version(entry.name));
    }
  for (const RecordedPackage& one : record.packages) {
    const std::string folder = path_join(site, one.metadata);
    if (const auto other = fresh.find(one.name); other != fresh.end()) {
      changes.push_back({RecordChange::Kind::PackageChanged, one.name, one.version, other->second});
      fresh.erase(other);
    } else if (!host.exists(folder)) {
      changes.push_back({RecordChange::Kind::PackageMissing, one.name, one.version, ""});
    } else if (const auto info = host.stat(path_join(folder, "RECORD"));
               one.mtime_ns != 0 && (!info || info->size != one.size || info->mtime_ns != one.mtime_ns)) {
      changes.push_back({RecordChange::Kind::PackageReinstalled, one.name, one.version, one.version});
    }
  }
  fresh.erase(kOurselves);
  for (const auto& [name, version] : fresh)
    changes.push_back({RecordChange::Kind::PackageAdded, name, "", version});
  return {};
}

}  // namespace

// The packages first: a package that was installed again explains its files.
Result<std::vector<RecordChange>> changes_since(const std::string& environment,
                                                const EnvironmentRecord& record) {
  const auto host = make_real_host();
  const std::string site =
      path_normalize(path_join(path_join(current_directory(), environment), record.site));
  if (record.packages.empty() && record.libraries.empty())
    return Error{Errc::Malformed,
                 message("{} lists no package and no compiled file", path_join(environment, kRecordFile)),
                 message("make it again: scankit env sync")};
  std::vector<RecordChange> changes;
  if (!record.packages.empty()) {
    SCANKIT_CHECK(compare_packages(*host, site, record, changes));
  }
  compare_files(*host, site, record, changes);
  return changes;
}

}  // namespace scankit::envspec
