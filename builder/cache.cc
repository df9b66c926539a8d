// SPDX-License-Identifier: Apache-2.0
#include "builder/cache.h"

#include <unistd.h>

#include <cstdlib>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

// An entry is this line, the SHA-256 of the rest in hex, a newline, the rest.
constexpr std::string_view kMagic = "scankit-cache-1\n";
constexpr std::size_t kHexLength = 64;
constexpr std::size_t kHeader = kMagic.size() + kHexLength + 1;
constexpr std::size_t kLimit = 256u << 20;

}  // namespace

std::string Cache::entry_path(const std::string& digest) const {
  return folder_ + "/objects/" + digest.substr(0, 2) + "/" + digest.substr(2);
}

std::string Cache::slot_path(const std::string& slot) const {
  return folder_ + "/last/" + sha256_hex(slot).substr(0, 32);
}

std::optional<std::string> Cache::find(const Key& key) const {
  const std::string path = entry_path(key.digest());
  auto bytes = read_whole_file(path, kLimit);
  if (!bytes) return std::nullopt;
  const std::string_view whole = *bytes;
  if (whole.size() >= kHeader && whole.starts_with(kMagic) &&
      sha256_hex(whole.substr(kHeader)) == whole.substr(kMagic.size(), kHexLength))
    return bytes->substr(kHeader);
  ::unlink(path.c_str());
  return std::nullopt;
}

Result<void> Cache::store(const Key& key, const std::string& slot, std::string_view bytes) const {
  const std::string path = entry_path(key.digest());
  SCANKIT_CHECK(make_directories(path_dirname(path)));
  std::string whole(kMagic);
  whole += sha256_hex(bytes) + "\n";
  whole += bytes;
  SCANKIT_CHECK(write_file_atomically(path, whole));
  SCANKIT_CHECK(make_directories(folder_ + "/last"));
  return write_file_atomically(slot_path(slot), key.text());
}

std::vector<std::string> Cache::why_missed(const Key& key, const std::string& slot) const {
  auto before = read_whole_file(slot_path(slot));
  if (!before) return {};
  return changed_labels(*before, key.text());
}

Result<std::string> cache_folder(const std::string& asked) {
  if (!asked.empty()) return path_normalize(path_join(current_directory(), asked));
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/')
    return path_join(xdg, "scankit");
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return path_join(home, ".cache/scankit");
  return Error{Errc::InvalidArgument, say("no folder for the cache: neither XDG_CACHE_HOME nor HOME is set"),
               say("name one with --cache-dir")};
}

}  // namespace scankit
