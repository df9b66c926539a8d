// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/hash_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/private_files.h"

namespace scankit {
namespace {

// A line with the hash of the rest, then one a file. What was cut or edited is not believed.
constexpr std::string_view kMagic = "scankit-hashes-1 ";
constexpr std::size_t kHexLength = 64, kFileLimit = 16u << 20;

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::uint64_t today() {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns() / kDay));
}

template <class Number>
bool take_number(std::string_view& line, Number& number) {
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (problem != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

HashCache::HashCache(const std::string& folder)
    : folder_(folder), file_(folder.empty() ? "" : path_join(folder, "file-hashes")) {
  if (!file_.empty()) entries_ = read(file_);
}

HashCache::Key HashCache::key_of(const FileInfo& info) {
  return {info.device, info.inode, info.size, info.mtime_ns, info.ctime_ns};
}

HashCache::Entries HashCache::read(const std::string& file) {
  Entries entries;
  const auto text = read_private_file(file, kFileLimit);
  if (!text || !text->starts_with(kMagic) || text->size() <= kMagic.size() + kHexLength) return entries;
  std::string_view rest = std::string_view(*text).substr(kMagic.size() + kHexLength + 1);
  if (text->compare(kMagic.size(), kHexLength, sha256_hex(rest)) != 0) return entries;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    FileInfo info;
    Entry entry;
    if (!take_number(line, info.device) || !take_number(line, info.inode) || !take_number(line, info.size) ||
        !take_number(line, info.mtime_ns) || !take_number(line, info.ctime_ns) ||
        !take_number(line, entry.used) || line.size() != kHexLength)
      continue;
    entry.sha256 = line;
    entries[key_of(info)] = std::move(entry);
  }
  return entries;
}

std::string HashCache::text_of(const Entries& entries) {
  std::string lines;
  for (const auto& [key, entry] : entries) {
    const auto& [device, inode, size, mtime, ctime] = key;
    for (const std::string& number :
         {std::to_string(device), std::to_string(inode), std::to_string(size), std::to_string(mtime),
          std::to_string(ctime), std::to_string(entry.used)})
      lines += number + " ";
    lines += entry.sha256 + "\n";
  }
  return std::string(kMagic) + sha256_hex(lines) + "\n" + lines;
}

std::optional<std::string> HashCache::find(const FileInfo& info) {
  const auto found = entries_.find(key_of(info));
  if (found == entries_.end()) return std::nullopt;
  if (found->second.used != today()) fresh_[found->first] = {found->second.sha256, today()};
  return found->second.sha256;
}

void HashCache::add(const FileInfo& info, const std::string& sha256) {
  // Kernels stamp files by a clock that ticks a few milliseconds apart, network servers by their own.
  constexpr std::int64_t kSettled = 2'000'000'000;
  if (file_.empty() || std::max(info.mtime_ns, info.ctime_ns) > now_ns() - kSettled) return;
  fresh_[key_of(info)] = entries_[key_of(info)] = {sha256, today()};
}

void HashCache::save() {
  if (file_.empty() || fresh_.empty() || !make_private_folders(folder_)) return;
  // One writer at a time, who takes in what the others wrote meanwhile; without the lock entries get lost.
  const Descriptor lock(::open((file_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (lock.get() >= 0) (void)::flock(lock.get(), LOCK_EX);
  Entries all = read(file_);
  for (const auto& [key, entry] : fresh_) all[key] = entry;
  if (all.size() > kLimit) {
    std::vector<std::pair<std::uint64_t, Key>> by_age;
    for (const auto& [key, entry] : all) by_age.emplace_back(entry.used, key);
    std::ranges::sort(by_age);
    by_age.resize(all.size() - kLimit);
    for (const auto& [used, key] : by_age) all.erase(key);
  }
  if (write_file_atomically(file_, text_of(all))) fresh_.clear();
}

}  // namespace scankit
