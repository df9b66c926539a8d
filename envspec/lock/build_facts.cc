// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/build_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "builder/fix/transaction.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/declared/module_file.h"
#include "doctor/model/json.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/target/wheel.h"
#include "envspec/check/check.h"

namespace scankit::envspec {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kRecordLimit = 64u << 20;

// pip writes WHEELS/AA/BB/CC/HASH/NAME-VERSION-TAGS.whl, so that the wheels are five levels down.
constexpr int kCacheDepth = 4;
constexpr std::size_t kMostFolders = 50'000;  // a cache that is larger is not searched to its end

void find_wheels_of(const Host& host, const std::string& folder, const std::string& stem, int depth,
                    std::size_t& folders, std::vector<std::string>& found) {
  if (++folders > kMostFolders) return;
  const auto entries = host.list(folder);
  for (const DirEntry& entry : entries ? *entries : std::vector<DirEntry>()) {
    const std::string path = path_join(folder, entry.name);
    if (entry.kind == FileKind::Directory && depth > 0)
      find_wheels_of(host, path, stem, depth - 1, folders, found);
    else if (depth == 0 && entry.name.starts_with(stem) && entry.name.ends_with(".whl") &&
             is_file_name(entry.name))
      found.push_back(path);
  }
}

// Whether the wheel's files are the installed ones. An installer writes some lines of its own, and moves what is in
// NAME.data; the lines of all other files stay as they are.
bool is_installed_one(const std::string& wheel, const std::set<std::string_view>& installed) {
  const auto record = probes::record_of_wheel(wheel);
  if (!record) return false;
  bool any = false;
  for (const std::string_view line : lines_of(*record)) {
    if (trimmed(line).empty() || line.find(".dist-info/RECORD,") != std::string_view::npos ||
        line.find(".data/") != std::string_view::npos)
      continue;
    if (!installed.contains(trimmed(line))) return false;
    any = true;
  }
  return any;
}

// {"url": "...", "archive_info": {"hash": "sha256=..."}}: direct_url.json's form (PEP 610).
std::optional<LockedArtifact> origin_next_to(const Host& host, const std::string& wheel) {
  const DirectUrl origin = read_direct_url(host, path_join(path_dirname(wheel), "origin.json"));
  if (!origin.archive || origin.sha256.empty() || origin.file_name.empty()) return std::nullopt;
  return LockedArtifact{origin.file_name, origin.sha256, 0, origin.url};
}

}  // namespace

std::string built_wheels_folder(const Host& host) {
  if (!host.is_live()) return "";
  const auto below = [&](const char* variable, const char* rest) {
    const std::string value = host.env(variable).value_or("");
    return value.starts_with('/') ? path_join(value, rest) : std::string();
  };
  for (std::string folder : {below("PIP_CACHE_DIR", "wheels"), below("XDG_CACHE_HOME", "pip/wheels"),
                             below("HOME", ".cache/pip/wheels")})
    if (!folder.empty()) return folder;
  return "";
}

std::optional<CachedBuild> find_cached_build(const Host& host, const std::string& folder,
                                             const Distribution& installed) {
  const std::string info = path_basename(installed.path), stem = info.substr(0, info.rfind(".dist-info"));
  if (folder.empty() || !info.ends_with(".dist-info")) return std::nullopt;
  const auto record = host.read_file(path_join(installed.path, "RECORD"), kRecordLimit);
  if (!record) return std::nullopt;
  std::set<std::string_view> lines;
  for (const std::string_view line : lines_of(*record)) lines.insert(trimmed(line));
  std::vector<std::string> wheels;
  std::size_t folders = 0;
  find_wheels_of(host, folder, stem + "-", kCacheDepth, folders, wheels);
  for (const std::string& wheel : wheels) {
    auto sdist = origin_next_to(host, wheel);
    const auto hash = sdist ? sha256_file(wheel) : Result<std::string>(Error{});
    const auto size = host.stat(wheel);
    if (!hash || !size || !is_installed_one(wheel, lines)) continue;
    return CachedBuild{*std::move(sdist), {path_basename(wheel), *hash, size->size, ""}};
  }
  return std::nullopt;
}

std::string generator_of(const Host& host, const Distribution& installed) {
  constexpr std::string_view kLabel = "Generator:";
  const auto text = probes::read_head(host, path_join(installed.path, "WHEEL"), 64u << 10);
  const std::string whole = text ? *text : std::string();  // the lines are views of it
  for (const std::string_view line : lines_of(whole))
    if (line.starts_with(kLabel)) return printable(trimmed(line.substr(kLabel.size())));
  return "";
}

// A journal that cannot be read, or is not this user's, tells nothing; the commands that act on it say why.
std::optional<RecordedBuild> recorded_build(const Host& host, const std::string& prefix,
                                            const Distribution& installed) {
  if (prefix.empty() || !host.is_live() || !host.is_directory(fix::StateFolder(prefix).root())) return {};
  const auto journals = fix::StateFolder(prefix).journals();
  const auto hash =
      journals ? sha256_file(path_join(installed.path, "RECORD")) : Result<std::string>(Error{});
  if (!hash) return {};
  std::optional<RecordedBuild> found;
  for (const fix::Journal& journal : *journals)
    for (const fix::BuildNote& one : journal.builds)
      if (journal.state == fix::Journal::State::Committed && one.record_sha256 == *hash &&
          one.package == normalized_name(installed.name) && one.version == installed.version)
        found = RecordedBuild{printable(one.torch), printable(one.installer), one.switches};
  if (found)
    std::erase_if(found->switches, [](const auto& one) {
      return !declared::is_build_switch(one.first) || !declared::is_switch_value(one.second);
    });
  return found;
}

// The compiled files of the package, by what they say themselves.
LockedToolchain toolchain_of(const Host& host, const PlacedLibraries& libraries,
                             const Distribution& installed) {
  LockedToolchain by;
  by.generator = generator_of(host, installed);
  std::set<std::string> compilers, cuda, nvcc, code, torch;
  std::size_t files = 0;
  bool uses_torch = false;
  Message why_no_torch;
  for (const PlacedLibrary& one : libraries.libraries) {
    if (one.distribution != normalized_name(installed.name)) continue;
    ++files;
    const probes::CompilerTraces traces = probes::compiler_traces(host, one.path);
    compilers.insert(traces.compilers.begin(), traces.compilers.end());
    cuda.insert(traces.toolkits.begin(), traces.toolkits.end());
    nvcc.insert(traces.nvccs.begin(), traces.nvccs.end());
    const Extension file = probes::inspect_extension(host, one.path);
    for (std::string& name : code_of(file.images)) code.insert(std::move(name));
    if (!file.uses_torch) continue;
    uses_torch = true;
    torch.insert(file.built_for.releases.begin(), file.built_for.releases.end());
    if (file.built_for.releases.empty()) why_no_torch = file.built_for.why_not_narrower;
  }
  const auto list = [](const std::set<std::string>& all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  by.compilers = list(compilers);
  by.cuda = list(cuda);
  by.nvcc = list(nvcc);
  by.code = list(code);
  by.torch = list(torch);
  const std::string none = english(message("it contains no compiled file"));
  if (by.compilers.empty())
    by.why_no_compilers = files == 0 ? none : english(message("its compiled files do not name a compiler"));
  if (by.cuda.empty())
    by.why_no_cuda = files == 0     ? none
                     : code.empty() ? english(message("it contains no device code"))
                                    : english(message("its device code does not name the toolkit"));
  if (by.torch.empty())
    by.why_no_torch = files == 0    ? none
                      : !uses_torch ? english(message("its compiled files use no symbol of torch"))
                                    : english(why_no_torch);
  return by;
}

namespace {

// Why the installer's records name no archive, "" where they do not exclude one.
std::string not_from_an_archive(const DirectUrl& direct) {
  if (!direct.there) return "";
  if (!direct.commit.empty())
    return english(message("it was built from commit {} of {}", direct.commit,
                           direct.url.empty() ? "a local repository" : direct.url));
  if (!direct.archive) return english(message("it was built from a local directory"));
  if (direct.file_name.ends_with(".whl"))
    return english(message("it was installed from the wheel {}", direct.file_name));
  return "";
}

void take_sdist(LockedBuild& build, LockedArtifact sdist, const char* from) {
  build.sdist = std::move(sdist);
  build.sdist_from = from;
}

}  // namespace

LockedBuild build_facts(const Host& host, const PlacedLibraries& libraries, const Distribution& installed,
                        const BuildHints& hints) {
  LockedBuild build;
  build.toolchain = toolchain_of(host, libraries, installed);
  build.recorded = recorded_build(host, hints.prefix, installed);
  const DirectUrl direct = direct_url(host, installed);
  const bool archive = direct.archive && !direct.file_name.empty() && !direct.file_name.ends_with(".whl");
  const auto cached = find_cached_build(host, hints.cache, installed);
  if (archive && !direct.sha256.empty())
    take_sdist(build, {direct.file_name, direct.sha256, 0, direct.url}, "direct_url");
  else if (cached)
    take_sdist(build, cached->sdist, "pip_cache");
  else if (build.why_no_sdist = not_from_an_archive(direct); build.why_no_sdist.empty()) {
    if (hints.index != nullptr)
      take_sdist(build, *hints.index, "index");
    else if (hints.older != nullptr && hints.older->sdist)
      take_sdist(build, *hints.older->sdist, hints.older->sdist_from.c_str());
    else if (hints.older_archive != nullptr && !archive)
      take_sdist(build, *hints.older_archive, "older_lock");
    else
      build.why_no_sdist =
          archive ? english(message("the installer did not record the hash of {}", direct.file_name))
                  : hints.why_not_index;
  }
  if (cached && build.sdist && cached->sdist.sha256 == build.sdist->sha256)
    build.wheel = cached->wheel;
  else if (direct.archive && !archive && !direct.sha256.empty())
    build.wheel = LockedArtifact{direct.file_name, direct.sha256, 0, direct.url};
  else if (hints.older != nullptr && hints.older->wheel)
    build.wheel = hints.older->wheel;
  else
    build.why_no_wheel =
        english(message("the installer kept no copy of the wheel; `files` are those that it contained"));
  return build;
}

}  // namespace scankit::envspec
