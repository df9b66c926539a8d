// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/install_metadata.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/target/wheel.h"
#include "envspec/lock/lock.h"

namespace scankit::envspec {

PlacedLibraries placed_libraries(const Host& host, const Snapshot& snapshot) {
  const probes::InstalledLibraries installed = probes::find_installed_libraries(host, snapshot);
  std::map<std::string, std::pair<std::size_t, std::string>> first;  // inner -> place of its folder, path
  for (const std::string& file : installed.files) {
    // One sys.path directory may be inside another (a project below site-packages). The innermost one
    // gives the library its name, since import finds the module there by that name.
    std::size_t place = installed.folders.size(), length = 0;
    for (std::size_t i = 0; i < installed.folders.size(); ++i)
      if (installed.folders[i].size() > length && file.starts_with(installed.folders[i] + "/")) {
        place = i;
        length = installed.folders[i].size();
      }
    if (length == 0) continue;
    // Of two copies with the same inner path, import takes the one whose directory comes
    // first on sys.path.
    const auto [at, fresh] = first.try_emplace(file.substr(length + 1), place, file);
    if (!fresh && place < at->second.first) at->second = {place, file};
  }
  PlacedLibraries placed;
  placed.unreadable = installed.unreadable;
  for (auto& [inner, found] : first) {
    const auto owner = installed.owners.find(found.second);
    placed.libraries.push_back(
        {found.second, inner, owner == installed.owners.end() ? "" : normalized_name(owner->second)});
  }
  return placed;
}

namespace {

using Json = nlohmann::json;

// A discarded value for a file that is missing, too large or not JSON; json_text() of it is "".
Json json_of(const Host& host, const std::string& path) {
  constexpr std::size_t kLimit = 32u << 20;
  const auto text = host.read_file(path, kLimit);
  return text ? parse_json_or_discard<Json>(*text) : Json(Json::value_t::discarded);
}

int hex_digit(char c) {
  const std::string_view digits = "0123456789abcdef";
  const auto at = digits.find(static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// PEP 610 has "hashes", a table by algorithm, and the deprecated "hash": "sha256=...".
std::string hash_in(const Json& archive) {
  if (const auto hashes = archive.find("hashes"); hashes != archive.end())
    if (std::string hash = json_text(*hashes, "sha256"); is_sha256(hash)) return hash;
  const std::string old = json_text(archive, "hash");
  return old.starts_with("sha256=") && is_sha256(old.substr(7)) ? old.substr(7) : "";
}

}  // namespace

std::string plain_url(const std::string& url) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return "";
  std::string plain = url.substr(0, url.find('#'));
  // Only an "@" before the first slash ends a user name; an "@" in the path is part of a file name.
  const auto begin = scheme + 3, end = std::min(plain.find('/', begin), plain.size());
  if (const auto at = plain.rfind('@', end); at != std::string::npos && at >= begin)
    plain.erase(begin, at + 1 - begin);
  // A file: URL is an absolute path of one machine, which a lock must not contain.
  return is_plain_url(plain) && !plain.starts_with("file:") ? plain : "";
}

// The name is decoded before it is checked, so that "..%2Fx" cannot smuggle a path into the lock.
std::string file_name_of(const std::string& url) {
  const std::string coded = path_basename(url.substr(0, url.find_first_of("?#")));
  std::string name;
  for (std::size_t i = 0; i < coded.size(); ++i) {
    const bool escape = coded[i] == '%' && i + 2 < coded.size() && hex_digit(coded[i + 1]) >= 0 &&
                        hex_digit(coded[i + 2]) >= 0;
    name += escape ? static_cast<char>(hex_digit(coded[i + 1]) * 16 + hex_digit(coded[i + 2])) : coded[i];
    if (escape) i += 2;
  }
  return is_file_name(name) ? name : "";
}

// PEP 610 demands exactly one of archive_info, vcs_info and dir_info; only an archive can
// be installed again.
DirectUrl direct_url(const Host& host, const Distribution& distribution) {
  return read_direct_url(host, path_join(distribution.path, "direct_url.json"));
}

DirectUrl read_direct_url(const Host& host, const std::string& path) {
  DirectUrl direct;
  const Json json = json_of(host, path);
  if (!json.is_object()) return direct;
  const std::string url = json_text(json, "url");
  direct.there = true;
  direct.local = url.starts_with("file:");
  if (const auto archive = json.find("archive_info"); archive != json.end() && archive->is_object()) {
    direct.archive = true;
    direct.sha256 = hash_in(*archive);
    direct.file_name = file_name_of(url);
  }
  if (const auto vcs = json.find("vcs_info"); vcs != json.end() && vcs->is_object())
    direct.commit = printable(json_text(*vcs, "commit_id"));
  if (!direct.local) direct.url = plain_url(url);
  return direct;
}

// WHEEL has one "Tag:" line for each tag, which some tools compress as in a file name (PEP 425):
// expanded_tags() undoes that. Sorted, each tag once.
std::vector<std::string> installed_tags(const Host& host, const Distribution& distribution) {
  std::vector<std::string> tags;
  const auto text = probes::read_head(host, path_join(distribution.path, "WHEEL"), 64u << 10);
  if (!text) return tags;
  for (const Wheel& line : probes::tag_lines(*text))
    for (std::string& tag : probes::expanded_tags(line)) tags.push_back(std::move(tag));
  std::ranges::sort(tags);
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());  // clang 14 does not read ranges::unique
  return tags;
}

bool has_tags(const std::string& wheel_file, const std::vector<std::string>& tags) {
  Wheel wheel;
  if (tags.empty() || !probes::read_wheel_name(wheel_file, wheel)) return false;
  const auto offered = probes::expanded_tags(wheel);
  return std::set<std::string>(offered.begin(), offered.end()) ==
         std::set<std::string>(tags.begin(), tags.end());
}

namespace {

// The name of a channel as an environment file has it: "conda-forge" of
// "https://HOST/conda-forge/linux-64". conda records the URL of the server that it asked,
// and libmamba and rattler end it with a slash; each user's channel_alias makes a URL of the name
// again. A server that is itself one channel has no name, and its URL stays.
std::string channel_name(std::string channel, const std::string& subdir) {
  const auto drop = [&](const std::string& end) {
    if (!end.empty() && channel.ends_with(end)) channel.erase(channel.size() - end.size());
  };
  drop("/");
  drop("/" + subdir);
  const auto scheme = channel.find("://");
  const auto host = scheme == std::string::npos ? 0 : scheme + 3;
  if (scheme != std::string::npos && channel.find('/', host) == std::string::npos) return plain_url(channel);
  auto slash = channel.rfind('/');
  if (slash == std::string::npos || slash < host) return channel;
  constexpr std::string_view kLabel = "/label";  // "conda-forge/label/rc"
  if (slash >= kLabel.size() && channel.compare(slash - kLabel.size(), kLabel.size(), kLabel) == 0)
    slash = channel.rfind('/', slash - kLabel.size() - 1);
  return channel.substr(slash == std::string::npos ? 0 : slash + 1);
}

// ".../t/TOKEN/conda-forge/linux-64/x.conda": how conda hands over a token for a private channel.
std::string without_token(std::string url) {
  const auto at = url.find("/t/");
  if (at != std::string::npos) url.erase(at, std::min(url.find('/', at + 3), url.size()) - at);
  return url;
}

}  // namespace

// Each package has one conda-meta/NAME-VERSION-BUILD.json; "history" and other files are not packages.
// A record without name, version or build cannot be installed again and is left out.
std::vector<CondaPackage> conda_packages(const Host& host, const std::string& prefix) {
  std::vector<CondaPackage> packages;
  const std::string folder = path_join(prefix, "conda-meta");
  const auto entries = host.list(folder);
  if (!entries) return packages;
  for (const DirEntry& entry : *entries) {
    if (!entry.name.ends_with(".json")) continue;
    const Json json = json_of(host, path_join(folder, entry.name));
    CondaPackage one;
    one.name = json_text(json, "name");
    one.version = json_text(json, "version");
    one.build = json_text(json, "build");
    if (one.build.empty()) one.build = json_text(json, "build_string");
    one.subdir = json_text(json, "subdir");
    one.channel = channel_name(without_token(json_text(json, "channel")), one.subdir);
    one.url = plain_url(without_token(json_text(json, "url")));
    if (std::string hash = json_text(json, "sha256"); is_sha256(hash)) one.sha256 = std::move(hash);
    one.md5 = json_text(json, "md5");
    if (!one.name.empty() && !one.version.empty() && !one.build.empty()) packages.push_back(std::move(one));
  }
  std::ranges::sort(packages, {}, &CondaPackage::name);
  return packages;
}

}  // namespace scankit::envspec
