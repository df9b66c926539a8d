// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/cache.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/snapshot_json.h"
#include "envspec/diff/sides.h"
#include "envspec/lock/hash_files.h"
#include "envspec/lock/installed.h"

namespace scankit {
namespace {

constexpr std::size_t kSideLimit = 256u << 20;

Result<Side> of_environment(const std::string& python) {
  SubjectOptions options;
  options.python = python;
  SCANKIT_TRY(Subject subject, look_at(options));
  if (!subject.snapshot.python.present())
    return Error{Errc::NotFound, retold(subject.snapshot.python.note), ""};
  Side side = side_of_facts(subject.facts);
  side.kind = "environment";
  side.here = std::make_shared<const Subject>(std::move(subject));
  return side;
}

// Both are JSON. A lock's schema is text ("1.0"), a snapshot's a number.
bool is_lock(const std::string& text) {
  constexpr std::string_view kKey = "\"schema\"";
  const auto key = text.find(kKey);
  const auto value = key == std::string::npos ? key : text.find_first_not_of(" \t\r\n:", key + kKey.size());
  return value != std::string::npos && text[value] == '"';
}

Result<Side> of_json(const std::string& text, const std::string& path) {
  if (is_lock(text)) {
    SCANKIT_TRY(const EnvironmentLock read, lock_from_json(text, path));
    return side_of_lock(read);
  }
  auto snapshot = snapshot_from_json(text);
  if (!snapshot)
    return Error{snapshot.error().code,
                 say("{} is neither a lock nor a snapshot: {}", path, snapshot.error().message),
                 say("make one with scankit env lock or scankit snapshot")};
  Side side = side_of_facts(facts_of(*snapshot));
  side.kind = "snapshot";
  return side;
}

Result<Side> of_file(const std::string& path) {
  SCANKIT_TRY(const std::string text, read_whole_file(path, kSideLimit, Accept::FilesAndPipes));
  const auto start = text.find_first_not_of(" \t\r\n");
  const bool json = start != std::string::npos && text[start] == '{';
  if (json) return of_json(text, path);
  SCANKIT_TRY(const Spec spec, parse_spec(text, path));
  return side_of_spec(spec);
}

}  // namespace

Result<Side> read_side(const std::string& path) {
  const std::string place = path_normalize(path_join(current_directory(), path));
  const auto info = make_real_host()->stat(place);
  if (!info)
    return Error{Errc::NotFound, say("{} is not there", path),
                 say("name a spec, a lock, a snapshot, a Python or its folder")};
  constexpr unsigned kExecutable = 0111;
  const bool environment = info->kind == FileKind::Directory ||
                           (info->kind == FileKind::Regular && (info->mode & kExecutable) != 0);
  auto side = environment ? of_environment(place) : of_file(path);
  if (side) side->name = path;
  return side;
}

void put_files(Side& side, const std::string& cache_dir) {
  if (!side.here || !side.here->host) return;
  const PlacedLibraries placed = placed_libraries(*side.here->host, side.here->snapshot);
  std::vector<std::string> paths;
  for (const PlacedLibrary& one : placed.libraries) paths.push_back(one.path);
  const auto folder = usable_cache_folder(cache_dir);  // without one every file is read again
  HashCache cache(folder ? *folder : "");
  const auto hashed = hash_files(*side.here->host, paths, cache);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    SideValue& value = side.values["files." + placed.libraries[i].inner];
    if (hashed[i].sha256)
      value.text = *hashed[i].sha256;
    else
      value.why_unknown = hashed[i].sha256.error().message;
  }
  for (const std::string& unreadable : placed.unreadable) side.values["files"].why_unknown = unreadable;
  side.tells_files = true;
}

}  // namespace scankit
