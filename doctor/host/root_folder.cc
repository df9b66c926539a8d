// SPDX-License-Identifier: Apache-2.0
#include "doctor/host/root_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "doctor/base/say.h"

namespace scankit {
namespace {

// openat2(2), Linux 5.6: the headers of the machine that builds may be older. RESOLVE_IN_ROOT keeps "..",
// absolute links and the path itself below the descriptor; RESOLVE_NO_MAGICLINKS refuses links of /proc that
// lead to open files.
struct OpenHow {
  std::uint64_t flags = 0, mode = 0, resolve = 0;
};
constexpr long kOpenat2 = 437;
constexpr std::uint64_t kNoMagicLinks = 0x02, kInRoot = 0x10;

int openat2_in_root(int root, const char* path, int flags) {
  const OpenHow how{static_cast<std::uint64_t>(flags), 0, kInRoot | kNoMagicLinks};
  // EAGAIN: something was renamed meanwhile, and the kernel cannot tell whether ".." led out.
  constexpr int kMostTries = 128;
  for (int tries = 0;;) {
    const long fd = ::syscall(kOpenat2, root, path, &how, sizeof(how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || ++tries == kMostTries) return static_cast<int>(fd);
  }
}

Error root_failure(const Message& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, message("{}: {}", what, std::strerror(number)), ""};
}

// The link that `fd` (O_PATH) is, "" where it is none.
Result<std::string> link_of(int fd, const std::string& path) {
  struct ::stat info {};
  if (::fstat(fd, &info) != 0) return root_failure(message("cannot stat {}", path), errno);
  if (!S_ISLNK(info.st_mode)) return std::string();
  std::array<char, 4096> target;
  const ssize_t length = ::readlinkat(fd, "", target.data(), target.size());
  if (length <= 0) return root_failure(message("cannot resolve {}", path), length == 0 ? ENOENT : errno);
  return std::string(target.data(), static_cast<std::size_t>(length));
}

// Takes the first part off `rest`; "" at its end.
std::string next_part(std::string& rest) {
  rest.erase(0, rest.find_first_not_of('/'));
  const auto slash = rest.find('/');
  const std::string part = rest.substr(0, slash);
  rest.erase(0, part.size());
  return part;
}

bool is_last(const std::string& rest) { return rest.find_first_not_of('/') == std::string::npos; }

}  // namespace

// Where a walk ended: the folders from the root on, each opened in the one before, and the name in the last
// of them; "." for the folder itself.
struct RootFolder::Place {
  std::vector<Descriptor> folders;
  std::vector<std::string> names;  // of `folders`
  std::string name = ".";
};

RootFolder::RootFolder(std::string path, RootAccess access)
    : path_(std::move(path)), root_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (access == RootAccess::Walk || root_.get() < 0) return;
  // ENOSYS before Linux 5.6; EPERM too, from the seccomp filters of container engines that do not know it.
  kernel_ = Descriptor(openat2_in_root(root_.get(), "/", O_PATH | O_CLOEXEC)).get() >= 0;
}

// The kernel's resolution, done by hand: each component is opened in the directory before it and never by a
// whole path. `last_too`: follow a link in the last place as well.
Result<RootFolder::Place> RootFolder::walk(const std::string& path, bool last_too) const {
  Place place;
  std::string rest = path;
  constexpr int kMostLinks = 40;  // as the kernel
  for (int links = 0;;) {
    const std::string part = next_part(rest);
    if (part.empty()) return place;
    if (part == ".") continue;
    if (part == "..") {  // ".." of the root is the root, as in the kernel
      if (!place.folders.empty()) {
        place.folders.pop_back();
        place.names.pop_back();
      }
      continue;
    }
    const int folder = place.folders.empty() ? root_.get() : place.folders.back().get();
    Descriptor fd(::openat(folder, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (fd.get() < 0) return root_failure(message("cannot open {}", path), errno);
    const bool last = is_last(rest);
    SCANKIT_TRY(const std::string link, link_of(fd.get(), path));
    if (!link.empty() && (!last || last_too)) {  // O_NOFOLLOW with O_PATH opens the link itself
      if (++links > kMostLinks) return root_failure(message("cannot resolve {}", path), ELOOP);
      if (link.starts_with('/')) {
        place.folders.clear();
        place.names.clear();
      }
      rest = link + rest;
      continue;
    }
    struct ::stat info {};
    if (::fstat(fd.get(), &info) != 0) return root_failure(message("cannot stat {}", path), errno);
    if (last && !S_ISDIR(info.st_mode)) {
      place.name = part;
      return place;
    }
    if (!S_ISDIR(info.st_mode)) return root_failure(message("cannot open {}", path), ENOTDIR);
    place.folders.push_back(std::move(fd));
    place.names.push_back(part);
  }
}

// The last component is opened again with the caller's flags, in the directory that the walk has open.
Result<Descriptor> RootFolder::open_by_walk(const std::string& path, int flags) const {
  const bool last_too = (flags & O_NOFOLLOW) == 0;
  SCANKIT_TRY(const Place place, walk(path, last_too));
  const int folder = place.folders.empty() ? root_.get() : place.folders.back().get();
  Descriptor fd(::openat(folder, place.name.c_str(), flags | O_NOFOLLOW));
  if (fd.get() < 0) return root_failure(message("cannot open {}", path), errno);
  // A link that came after the walk: O_PATH opens it, and its own facts are not those that were asked for.
  if ((flags & O_PATH) != 0 && last_too) {
    SCANKIT_TRY(const std::string link, link_of(fd.get(), path));
    if (!link.empty()) return root_failure(message("cannot resolve {}", path), ELOOP);
  }
  return fd;
}

Result<Descriptor> RootFolder::open(const std::string& path, int flags) const {
  if (root_.get() < 0) return root_failure(message("cannot open {}", path_), ENOENT);
  if (!kernel_) return open_by_walk(path, flags | O_CLOEXEC);
  Descriptor fd(openat2_in_root(root_.get(), path.empty() ? "/" : path.c_str(), flags | O_CLOEXEC));
  if (fd.get() >= 0) return fd;
  if (errno == EAGAIN) return open_by_walk(path, flags | O_CLOEXEC);
  return root_failure(message("cannot open {}", path), errno);
}

// By the walk in either case: openat2 returns a descriptor and no path.
Result<std::string> RootFolder::resolve(const std::string& path) const {
  if (root_.get() < 0) return root_failure(message("cannot open {}", path_), ENOENT);
  SCANKIT_TRY(const Place place, walk(path, true));
  std::string real;
  for (const std::string& name : place.names) real.append("/").append(name);
  if (place.name != ".") real.append("/").append(place.name);
  return real.empty() ? "/" : real;
}

}  // namespace scankit
