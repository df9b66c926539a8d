// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/report/progress.h"

namespace scankit::compile {
namespace {

// The first value with the label; null if there is none.
const std::string* value_of(const Inputs& inputs, const std::string& label) {
  const auto at =
      std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.first == label; });
  return at == inputs.end() ? nullptr : &at->second;
}

}  // namespace

std::string Key::digest() const {
  std::string all;
  for (const auto& [label, value] : inputs_)
    all +=
        std::to_string(label.size()) + ":" + label + "=" + std::to_string(value.size()) + ":" + value + "\n";
  return sha256_hex(all);
}

std::string Key::text() const {
  std::string all;
  for (const auto& [label, value] : inputs_) all += label + ": " + value + "\n";
  return all;
}

Inputs parse_inputs(const std::string& text) {
  Inputs inputs;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos) inputs.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return inputs;
}

std::vector<InputChange> changed_inputs(const Inputs& before, const Inputs& after) {
  std::vector<InputChange> changes;
  for (const auto& [label, value] : after) {
    const std::string* old = value_of(before, label);
    if (old == nullptr) changes.push_back({label, "", value, true, false});
    if (old != nullptr && *old != value) changes.push_back({label, *old, value, false, false});
  }
  for (const auto& [label, value] : before)
    if (value_of(after, label) == nullptr) changes.push_back({label, value, "", false, true});
  return changes;
}

namespace {

// An entry is this line, a line with the digest of its key, one with the SHA-256 of the rest, the rest. The
// key stands in it so that an entry under another one's name is no hit.
constexpr std::string_view kMagic = "scankit-cache-2\n";
constexpr std::size_t kHexDigits = 64;
constexpr std::size_t kEntryHeader = kMagic.size() + 2 * (kHexDigits + 1);
constexpr std::size_t kEntryLimit = 256u << 20, kSlotLimit = 64u << 20;

std::string header_of(const std::string& digest, std::string_view bytes) {
  return std::string(kMagic).append(digest).append("\n").append(sha256_hex(bytes)).append("\n");
}

}  // namespace

// 256 directories by the first two digits, as git has them, keep each one short.
std::string Cache::entry_path(const std::string& digest) const {
  return folder_ + "/objects/" + digest.substr(0, 2) + "/" + digest.substr(2);
}

// By a hash, since a slot's name has blanks and may have slashes.
std::string Cache::slot_path(const std::string& slot) const {
  return folder_ + "/last/" + sha256_hex(slot).substr(0, 32);
}

// Marks an entry as used now. The time of the last use is the file's modification time, since access times
// are switched off on many machines.
void Cache::use(const std::string& path) const {
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // not on a read-only cache
  const std::lock_guard<std::mutex> guard(mutex_);
  used_.insert(path);
}

void Cache::note(std::string text) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

std::vector<std::string> Cache::take_notes() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::exchange(notes_, {});
}

// An entry that others could have written is left alone and noted. A damaged one is removed.
Cache::Lookup Cache::look_up(const Key& key) const {
  if (limit_ == 0) return {};
  const std::string digest = key.digest(), path = entry_path(digest);
  auto whole = read_private_file(path, kEntryLimit);
  if (!whole) {
    if (whole.error().code != Errc::NotFound) note(say("ignoring a cache entry: {}", whole.error().message));
    return {};
  }
  const std::string_view bytes = std::string_view(*whole).substr(std::min(kEntryHeader, whole->size()));
  if (whole->starts_with(header_of(digest, bytes))) {
    use(path);
    return {std::string(bytes), ""};
  }
  ::unlink(path.c_str());
  return {std::nullopt, path};
}

void Cache::store(const Key& key, const std::string& slot, std::string_view bytes) const {
  if (limit_ == 0) return;
  const std::string digest = key.digest(), path = entry_path(digest);
  Result<void> stored = make_private_folders(path_dirname(path));
  if (stored) stored = write_file_atomically(path, header_of(digest, bytes).append(bytes));
  if (stored) {
    remember(key, slot);
    const std::lock_guard<std::mutex> guard(mutex_);
    used_.insert(path);
    stored_ = true;
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (std::exchange(unwritable_, true)) return;  // the reason is the same for all of them
  }
  note(say("cannot write to the cache {}, so the next build will compile again: {}", folder_,
           stored.error().message));
}

std::optional<std::string> Cache::last_inputs(const std::string& slot) const {
  if (limit_ == 0) return std::nullopt;
  auto text = read_private_file(slot_path(slot), kSlotLimit);
  if (!text) return std::nullopt;
  return std::move(*text);
}

void Cache::remember(const Key& key, const std::string& slot) const {
  if (limit_ == 0) return;
  const std::string text = key.text(), path = slot_path(slot);
  if (last_inputs(slot) == text) return use(path);
  // What cannot be remembered costs an explanation, no build.
  if (make_private_folders(folder_ + "/last") && write_file_atomically(path, text)) use(path);
}

Result<std::string> cache_folder(const std::string& asked) {
  if (!asked.empty()) return path_normalize(path_join(current_directory(), asked));
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/')
    return path_join(xdg, "scankit");
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return path_join(home, ".cache/scankit");
  return Error{Errc::InvalidArgument,
               message("no directory for the cache: neither XDG_CACHE_HOME nor HOME is "
                       "set"),
               message("choose one with --cache-dir")};
}

Result<std::string> usable_cache_folder(const std::string& asked) {
  SCANKIT_TRY(const std::string folder, cache_folder(asked));
  const auto ours = check_private_folder(folder);
  if (ours || ours.error().code == Errc::NotFound) return folder;
  const Message next = ours.error().hint.empty() ? message("choose a directory of your own with --cache-dir")
                                                 : ours.error().hint;
  report::progress_note(
      say("the cache {} is not used: {}, so anybody may have written the compiled code in it; {}", folder,
          ours.error().message, next));
  return std::string();
}

Result<std::uint64_t> parse_cache_size(const std::string& text) {
  if (text.empty()) return kDefaultCacheSize;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string unit = text.substr(digits);
  const std::string_view units = "KMGT";
  const auto power = unit.size() == 1 ? units.find(unit[0]) : std::string_view::npos;
  if (digits == 0 || digits > 12 || (!unit.empty() && power == std::string_view::npos))
    return Error{Errc::InvalidArgument, message("--cache-size {}: expected a number of bytes", text),
                 message("use a value such as 512M or 2G")};
  const std::uint64_t number = std::stoull(text.substr(0, digits));
  const unsigned shift = unit.empty() ? 0 : 10 * (static_cast<unsigned>(power) + 1);
  if (number > (~std::uint64_t{0} >> shift))
    return Error{Errc::InvalidArgument, message("--cache-size {}: expected a number of bytes", text),
                 message("use a value such as 512M or 2G")};
  return number << shift;
}

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLeftOver = 3600 * kSecond;  // no write of one entry takes an hour

struct File {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t used = 0;  // nanoseconds since the epoch
};

// Nothing if it is not a regular file. The size is that on disk: st_blocks counts 512 bytes each.
std::optional<File> look_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return File{path, static_cast<std::uint64_t>(info.st_blocks) * 512,
              info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec};
}

// All entries and slots. Whatever else is below the directory is not ours and is never looked at.
std::vector<File> cache_files(const std::string& folder) {
  std::vector<File> files;
  for (const char* part : {"/objects", "/last"}) {
    std::error_code code;
    std::filesystem::recursive_directory_iterator entries(folder + part, code), end;
    for (; !code && entries != end; entries.increment(code))
      if (auto file = look_at(entries->path().string())) files.push_back(std::move(*file));
  }
  return files;
}

// Whether a killed builder left the file: write_file_atomically() writes to NAME.XXXXXX and then renames. A
// file that is younger than an hour may still be written.
bool is_left_over(const File& file) {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  // A time in the future is from before the clock was put back, so that file is old as well.
  const std::int64_t age = now.tv_sec * kSecond + now.tv_nsec - file.used;
  return path_basename(file.path).find('.') != std::string::npos && std::abs(age) > kLeftOver;
}

bool remove(const File& file) {
  // A builder that found the entry in the meantime has touched it and will want it again.
  const auto now = look_at(file.path);
  return now && now->used == file.used && ::unlink(file.path.c_str()) == 0;
}

}  // namespace

void Cache::trim() const {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!stored_) return;
  }
  const Descriptor lock(::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<File> files = cache_files(folder_);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  std::uint64_t total = 0;
  for (const File& file : files) total += file.size;
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const File& file : files) {
    const bool over = total > limit_ && used_.count(file.path) == 0;
    if ((over || is_left_over(file)) && remove(file)) total -= file.size;
  }
  if (total > limit_)
    notes_.push_back(
        say("this build needs more of the cache {} than --cache-size allows: {:.1f} MB of {:.1f} MB", folder_,
            static_cast<double>(total) / 1e6, static_cast<double>(limit_) / 1e6));
}

}  // namespace scankit::compile
