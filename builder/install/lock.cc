// SPDX-License-Identifier: Apache-2.0
#include "builder/install/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "doctor/base/say.h"

namespace scankit {

Result<Lock> Lock::take(const std::string& folder) {
  SCANKIT_CHECK(make_directories(folder));
  const std::string path = folder + "/lock";
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0)
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
