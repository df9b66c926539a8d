// SPDX-License-Identifier: Apache-2.0
#include "builder/install/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "builder/install/trust.h"
#include "doctor/base/say.h"

namespace scankit {

Result<Lock> Lock::take(const std::string& folder) {
  SCANKIT_CHECK(check_own_folder(folder));
  SCANKIT_CHECK(make_directories(folder));
  const std::string path = folder + "/lock";
  // Not through a link, and not a second name of something: its content is replaced below.
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat info {};
  const bool opened = fd.get() >= 0 && ::fstat(fd.get(), &info) == 0;
  if ((opened && (!S_ISREG(info.st_mode) || info.st_nlink > 1)) ||
      (!opened && (errno == ELOOP || errno == EISDIR)))
    return Error{Errc::PermissionDenied, say("{} is no lock file that scankit made", path),
                 say("remove {}", path)};
  if (!opened)
    return Error{errno == EACCES || errno == EROFS ? Errc::PermissionDenied : Errc::Io,
                 say("cannot open {}: {}", path, std::strerror(errno)), ""};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = "";
    if (::pread(fd.get(), holder, sizeof(holder) - 1, 0) < 0) holder[0] = '\0';
    return Error{
        Errc::Conflict,
        say("another scankit is changing this environment (process {})", static_cast<const char*>(holder)),
        say("wait until it ends")};
  }
  const std::string id = std::to_string(::getpid());
  // Only the message above reads it.
  if (::ftruncate(fd.get(), 0) == 0) (void)!::pwrite(fd.get(), id.data(), id.size(), 0);
  return Lock(std::move(fd));
}

}  // namespace scankit
