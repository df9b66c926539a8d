// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/distributions.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kHeaders =
    8192;  // Name and Version are the first fields of METADATA; the description is not read

// The first field `key` of METADATA or PKG-INFO, in any case; "" where the headers do not have it.
std::string header(std::string_view text, std::string_view key) {
  for (const std::string_view line : lines_of(text)) {
    if (trimmed(line).empty()) return {};  // the description follows
    if (line.size() > key.size() && line[key.size()] == ':' &&
        lowered(line.substr(0, key.size())) == lowered(key))
      return std::string(trimmed(line.substr(key.size() + 1)));
  }
  return {};
}

// "mamba_ssm-2.2.4.dist-info", "PyJWT-2.6.0.egg-info", "vmamba-0.1-py3.10-linux-x86_64.egg" -> name,
// version. This is all that is known where METADATA is unreadable; the name has "_" for "-" then (PEP 427).
void read_folder_name(std::string stem, Distribution& distribution) {
  for (const char* suffix : {".dist-info", ".egg-info", ".egg"})
    if (stem.ends_with(suffix)) stem.erase(stem.rfind('.'));
  if (const auto tag = stem.find("-py3"); tag != std::string::npos) stem.erase(tag);
  const auto dash = stem.find('-');
  distribution.name = stem.substr(0, dash);
  if (dash != std::string::npos) distribution.version = stem.substr(dash + 1);
}

// A file: URL as a path; pip percent-encodes what is not plain ASCII.
std::string path_of_url(const std::string& url) {
  const auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string path;
  for (std::size_t i = std::string_view("file://").size(); i < url.size(); ++i) {
    const bool escape = url[i] == '%' && i + 2 < url.size();
    const std::string digits = escape ? lowered(url.substr(i + 1, 2)) : "";
    if (escape && value(digits[0]) >= 0 && value(digits[1]) >= 0) {
      path += static_cast<char>(value(digits[0]) * 16 + value(digits[1]));
      i += 2;
    } else {
      path += url[i];
    }
  }
  return path;
}

// "" also where the value is not a string: the file is not ours.
std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// "https://user:secret@host/x" -> "https://host/x": what is stored may be shown. "git" in "ssh://git@host" is
// part of the address.
std::string without_secret(const std::string& url) {
  const auto start = url.find("://");
  if (start == std::string::npos) return url;
  const auto end = url.find('/', start + 3), at = url.rfind('@', end);
  const auto colon = url.find(':', start + 3);
  if (at == std::string::npos || at < start + 3 || colon == std::string::npos || colon > at) return url;
  return url.substr(0, start + 3) + url.substr(at + 1);
}

// As a requirement names it (PEP 508, PEP 610).
std::string source_in(const Json& json) {
  const std::string url = text_in(json, "url");
  if (url.starts_with("file://") && !json.contains("vcs_info")) return path_of_url(url);
  std::string source = without_secret(url);
  if (const auto vcs = json.find("vcs_info"); vcs != json.end() && vcs->is_object()) {
    source = text_in(*vcs, "vcs") + "+" + source;
    if (const std::string commit = text_in(*vcs, "commit_id"); !commit.empty()) source += "@" + commit;
  }
  if (const std::string part = text_in(json, "subdirectory"); !part.empty())
    source += "#subdirectory=" + part;
  return source;
}

// PEP 610 demands an object; null stands for a missing file, a discarded value for a broken one.
Json direct_url_of(const Host& host, const Distribution& distribution) {
  const auto text = host.read_file(path_join(distribution.path, "direct_url.json"), 1u << 20);
  return text ? parse_json_or_discard<Json>(*text) : Json();
}

void read_direct_url(const Host& host, Distribution& distribution) {
  const Json json = direct_url_of(host, distribution);
  if (!json.is_object()) return;
  const auto folder = json.find("dir_info");
  distribution.editable = folder != json.end() && folder->is_object() && folder->contains("editable") &&
                          (*folder)["editable"].is_boolean() && (*folder)["editable"].get<bool>();
  const std::string url = text_in(json, "url");
  if (url.empty()) return;
  // Also where it is no link to the folder: no index may be
  // asked for that name, which may be another's there.
  const bool linked = distribution.editable && url.starts_with("file://");
  distribution.project = linked ? path_of_url(url) : source_in(json);
}

// Reads every site directory of sys.path in order. Legacy editables and conda's channels come from files
// next to the metadata, so they are matched to the distributions at the end.
class DistributionReader {
 public:
  DistributionReader(const Host& host, const Python& python) : host_(host), python_(python) {}

  std::vector<Distribution> read() {
    for (const PathEntry& entry : python_.sys_path) {
      // What happens to lie in the current folder is not installed;
      // the standard library holds no distribution.
      if (!entry.exists || entry.origin == "cwd" || entry.origin == "stdlib" || entry.origin == "lib-dynload")
        continue;
      if (entry.path.ends_with(".egg")) read_egg(entry.path);
      read_folder(entry.path);
    }
    mark_legacy_editables();
    mark_conda();
    return std::move(found_);
  }

 private:
  void read_folder(const std::string& folder) {
    const auto entries = host_.list(folder);
    if (!entries) return;  // a file (a zip), or unreadable, which the caller reports
    for (const DirEntry& entry : *entries) {
      const std::string path = path_join(folder, entry.name);
      if (entry.name.ends_with(".dist-info"))
        read_metadata(path, "METADATA", entry.name);
      else if (entry.name.ends_with(".egg-info"))
        read_metadata(path, entry.kind == FileKind::Regular ? "" : "PKG-INFO", entry.name);
      else if (entry.name.ends_with(".egg-link"))
        read_egg_link(path);
    }
  }

  // An egg is on sys.path itself, through a line of easy-install.pth.
  void read_egg(const std::string& path) {
    if (host_.is_directory(path))
      return read_metadata(path_join(path, "EGG-INFO"), "PKG-INFO", path_basename(path));
    Distribution distribution;  // a zipped egg: only its file name is told
    distribution.path = path;
    read_folder_name(path_basename(path), distribution);
    found_.push_back(std::move(distribution));
  }

  // `file` is METADATA or PKG-INFO, and "" where `path` itself is the metadata (a single .egg-info file of
  // distutils). Without a readable file, the name and version of the directory remain.
  void read_metadata(const std::string& path, const std::string& file, const std::string& folder_name) {
    Distribution distribution;
    distribution.path = path;
    read_folder_name(folder_name, distribution);
    if (const auto text = read_head(host_, file.empty() ? path : path_join(path, file), kHeaders)) {
      if (auto name = header(*text, "Name"); !name.empty()) distribution.name = std::move(name);
      if (auto version = header(*text, "Version"); !version.empty())
        distribution.version = std::move(version);
    }
    if (!file.empty()) {
      if (const auto installer = read_head(host_, path_join(path, "INSTALLER"), 256))
        distribution.installer = std::string(trimmed(*installer));
      read_direct_url(host_, distribution);
    }
    found_.push_back(std::move(distribution));
  }

  // setup.py develop: first line the folder that holds
  // NAME.egg-info, which easy-install.pth puts on the path.
  void read_egg_link(const std::string& path) {
    const auto text = read_head(host_, path, 4096);
    if (!text) return;
    const auto lines = lines_of(*text);
    if (lines.empty() || trimmed(lines.front()).empty()) return;
    links_[absolute_path(host_, std::string(trimmed(lines.front())))] = path;
  }

  // The project directory is on sys.path by easy-install.pth, so its NAME.egg-info was found like any other.
  void mark_legacy_editables() {
    std::set<std::string> seen;
    for (Distribution& distribution : found_) {
      const std::string folder = path_dirname(distribution.path);
      if (!links_.contains(folder)) continue;
      seen.insert(folder);
      distribution.editable = true;
      distribution.project = folder;
    }
    // Only the link is left, or its folder is not on the path: pip still lists it.
    for (const auto& [folder, link] : links_) {
      if (seen.contains(folder)) continue;
      Distribution distribution;
      distribution.path = link;
      distribution.name = path_basename(link).substr(0, path_basename(link).rfind('.'));
      distribution.editable = true;
      distribution.project = folder;
      found_.push_back(std::move(distribution));
    }
  }

  // conda-meta/NAME-VERSION-BUILD.json names the channel near its start.
  void mark_conda() {
    const auto entries = host_.list(path_join(python_.prefix, "conda-meta"));
    if (!entries) return;
    std::map<std::string, std::string> files;
    for (const DirEntry& entry : *entries) {
      const auto build = entry.name.rfind('-');
      const auto version =
          build == std::string::npos || build == 0 ? build : entry.name.rfind('-', build - 1);
      if (!entry.name.ends_with(".json") || version == std::string::npos || version == 0) continue;
      files[normalized_name(entry.name.substr(0, version))] = entry.name;
    }
    for (Distribution& distribution : found_) {
      const std::string name = normalized_name(distribution.name);
      auto file = files.find(name);
      // conda calls the package of torch "pytorch". What pip or uv wrote over conda's files is theirs.
      if (file == files.end() && name == "torch") file = files.find("pytorch");
      if (file == files.end() || (!distribution.installer.empty() && distribution.installer != "conda"))
        continue;
      distribution.conda_channel = channel_of(path_join(python_.prefix, "conda-meta/" + file->second));
    }
  }

  // The whole record only where its first 4 KiB do not have the key: it lists every file of the package.
  std::string channel_of(const std::string& file) {
    for (const std::size_t limit : {std::size_t{4096}, std::size_t{8} << 20}) {
      const auto text = read_head(host_, file, limit);
      if (!text) return {};
      auto at = text->find("\"channel\":");
      if (at == std::string::npos) continue;
      at = text->find('"', at + 10);
      if (auto literal = python_string_literal(*text, at)) return *literal;
    }
    return {};
  }

  const Host& host_;
  const Python& python_;
  std::vector<Distribution> found_;
  std::map<std::string, std::string> links_;  // project folder -> the .egg-link
};

// Finders and .pth files of editable installs that are too old for direct_url.json.
void mark_finder_editables(const Python& python, std::vector<Distribution>& distributions) {
  for (const std::string& text : python.editable_finders) {
    const auto mapping = editable_mapping(text);
    if (!mapping) continue;
    for (Distribution& distribution : distributions) {
      std::string name = normalized_name(distribution.name);
      std::ranges::replace(name, '-', '_');
      const std::string finder = lowered(path_basename(mapping->file));
      if (!finder.starts_with("__editable___" + name + "_") && finder != "_editable_impl_" + name + ".py")
        continue;
      distribution.editable = true;
      if (distribution.project.empty()) distribution.project = path_dirname(mapping->folder);
    }
  }
}

}  // namespace

Probed<std::vector<Distribution>> probe_distributions(const Host& host, const Python& python) {
  const auto unreadable = unreadable_site_folders(host, python);
  std::vector<Distribution> found = DistributionReader(host, python).read();
  mark_finder_editables(python, found);
  if (unreadable.empty()) return Probed<std::vector<Distribution>>::of(std::move(found));
  auto failed = Probed<std::vector<Distribution>>::failed(
      message("{}; run as a user with read permission", clauses_of(unreadable)));
  failed.value = std::move(found);
  return failed;
}

std::string source_of(const Host& host, const Distribution& distribution) {
  const Json json = direct_url_of(host, distribution);
  return json.is_object() && !text_in(json, "url").empty() ? source_in(json) : "";
}

// RECORD is CSV with paths relative to site-packages (PEP 376). Searching for ".so" spares a parse of tens
// of thousands of lines. "libx.so.12" counts, "a.sources" does not.
std::vector<std::string> shared_libraries_of(const Host& host, const Distribution& distribution) {
  std::vector<std::string> libraries;
  const auto record = host.read_file(path_join(distribution.path, "RECORD"), 64u << 20);
  if (!record) return libraries;
  const std::string folder = path_dirname(distribution.path);
  for (auto at = record->find(".so"); at != std::string::npos; at = record->find(".so", at + 1)) {
    const auto start = record->rfind('\n', at) + 1;  // npos + 1 is 0
    const auto end = record->find_first_of(",\n", at);
    if (end == std::string::npos) break;
    const std::string name = record->substr(start, end - start);
    const std::string_view rest = std::string_view(name).substr(at - start + 3);
    at = end;
    if (!rest.empty() && rest.find_first_not_of(".0123456789") != std::string_view::npos) continue;
    std::string path = path_normalize(path_join(folder, name));
    if (is_regular_file(host, path)) libraries.push_back(std::move(path));
  }
  return libraries;
}

}  // namespace scankit::probes
