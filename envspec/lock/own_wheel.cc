// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/own_wheel.h"

#include <algorithm>
#include <set>

#include "builder/fix/distribution.h"
#include "builder/fix/stored_zip.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_text.h"
#include "envspec/lock/lock_values.h"
#include "envspec/lock/records.h"

namespace scankit {
namespace {

constexpr std::size_t kOwnWheelLimit = 512u << 20;  // it is made in memory, and stored_zip() ends at 4 GB

Error cannot(const std::string& name, const std::string& why) {
  return {Errc::Unsupported, say("{} cannot be made a wheel again: {}", name, why),
          say("build it as a wheel")};
}

// RECORD is CSV: a name with a comma or a quotation mark stands in quotes.
std::string record_path(std::string_view line) {
  if (!line.starts_with('"')) return std::string(line.substr(0, line.find(',')));
  std::string path;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"' && (i + 1 >= line.size() || line[i + 1] != '"')) break;
    if (line[i] == '"') ++i;
    path += line[i];
  }
  return path;
}

// What the installer wrote itself and will write again.
bool is_installers(const std::string& path, const std::string& info) {
  for (const char* name :
       {"/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json", "/uv_cache.json", "/uv_build.json"})
    if (path == info + name) return true;
  return path.ends_with(".pyc");
}

// "cp38-abi3-linux_x86_64", or several tags joined as PEP 425 joins them. "" where they are no product.
std::string joined_tags(const std::vector<std::string>& tags) {
  std::set<std::string> parts[3];
  for (const std::string& tag : tags) {
    const auto first = tag.find('-'), last = tag.rfind('-');
    if (first == std::string::npos || first == last) return "";
    parts[0].insert(tag.substr(0, first));
    parts[1].insert(tag.substr(first + 1, last - first - 1));
    parts[2].insert(tag.substr(last + 1));
  }
  if (tags.size() != parts[0].size() * parts[1].size() * parts[2].size()) return "";
  std::string name;
  for (const auto& part : parts) {
    name += name.empty() ? "" : "-";
    for (const std::string& word : part) name += (name.empty() || name.back() == '-' ? "" : ".") + word;
  }
  return name;
}

Result<std::vector<InstalledFile>> recorded_files(const Host& host, const Distribution& distribution,
                                                  const std::string& record) {
  const std::string folder = path_dirname(distribution.path), info = path_basename(distribution.path);
  const bool has_programs = host.exists(path_join(distribution.path, "entry_points.txt"));
  std::vector<InstalledFile> files;
  std::size_t total = 0;
  for (const std::string_view line : lines_of(record)) {
    const std::string path = record_path(line);
    if (path.empty() || is_installers(path, info)) continue;
    // The programs of entry points are made by the installer.
    if (has_programs && path.starts_with("../") && path.find("/bin/") != std::string::npos) continue;
    if (!is_inner_path(path))
      return cannot(distribution.name, say("{} lies outside of its folder", shown_value(path)));
    auto bytes = host.read_file(path_join(folder, path), kOwnWheelLimit);
    if (!bytes) return cannot(distribution.name, bytes.error().message);
    total += bytes->size();
    if (total > kOwnWheelLimit)
      return cannot(distribution.name, say("it is larger than {} MB", kOwnWheelLimit >> 20));
    const std::string now = record_line({path, *bytes});
    if (line != now.substr(0, now.size() - 1))
      return cannot(distribution.name, say("{} is not as its RECORD says", shown_value(path)));
    files.push_back({path, *std::move(bytes)});
  }
  std::ranges::sort(files, {}, &InstalledFile::path);
  return files;
}

}  // namespace

Result<RepackedWheel> repack(const Host& host, const Distribution& distribution) {
  const std::string info = path_basename(distribution.path);
  const std::string stem = info.substr(0, info.rfind(".dist-info"));
  const std::string tags = joined_tags(installed_tags(host, distribution));
  RepackedWheel wheel;
  wheel.file = stem + "-" + tags + ".whl";
  if (!info.ends_with(".dist-info") || tags.empty() || !is_file_name(wheel.file))
    return cannot(distribution.name, say("it was not installed from a wheel"));
  const auto record = host.read_file(path_join(distribution.path, "RECORD"), 64u << 20);
  if (!record) return cannot(distribution.name, say("it has no RECORD"));
  SCANKIT_TRY(std::vector<InstalledFile> files, recorded_files(host, distribution, *record));
  std::string lines;
  for (const InstalledFile& file : files) lines += record_line(file);
  const std::string path = info + "/RECORD";
  files.push_back({path, lines + path + ",,\n"});
  wheel.bytes = stored_zip(files);
  return wheel;
}

}  // namespace scankit
