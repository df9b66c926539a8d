// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/grafted_host.h"

#include "doctor/base/files.h"

namespace scankit {

void GraftedHost::graft(const std::string& at, const std::string& folder) {
  grafts_.push_back({at, make_real_host(folder)});
}

// Lexical ".." is right here: what is grafted has no links among its folders, and a path that leaves the
// graft means the system's own.
GraftedHost::Place GraftedHost::find(const std::string& path) const {
  if (grafts_.empty()) return {base_.get(), path, ""};
  const std::string plain = path_normalize(path);
  for (const Graft& graft : grafts_) {
    if (plain != graft.at && !plain.starts_with(graft.at + "/")) continue;
    const std::string rest = plain.substr(graft.at.size());
    if (rest.empty()) return {graft.host.get(), "/", graft.at};
    if (below_.empty() || graft.host->lstat(rest)) return {graft.host.get(), rest, graft.at};
    return {base_.get(), below_ + rest, ""};
  }
  return {base_.get(), path, ""};
}

Result<std::string> GraftedHost::read_file(const std::string& path, std::size_t limit) const {
  const Place place = find(path);
  return place.host->read_file(place.path, limit);
}
Result<std::unique_ptr<ByteSource>> GraftedHost::open(const std::string& path) const {
  const Place place = find(path);
  return place.host->open(place.path);
}
Result<std::vector<DirEntry>> GraftedHost::list(const std::string& path) const {
  const Place place = find(path);
  return place.host->list(place.path);
}
Result<FileInfo> GraftedHost::stat(const std::string& path) const {
  const Place place = find(path);
  return place.host->stat(place.path);
}
Result<FileInfo> GraftedHost::lstat(const std::string& path) const {
  const Place place = find(path);
  return place.host->lstat(place.path);
}
Result<std::string> GraftedHost::readlink(const std::string& path) const {
  const Place place = find(path);
  return place.host->readlink(place.path);
}
Result<std::string> GraftedHost::realpath(const std::string& path) const {
  const Place place = find(path);
  auto real = place.host->realpath(place.path);
  if (!real || place.at.empty()) return real;
  return *real == "/" ? place.at : place.at + *real;
}

}  // namespace scankit
