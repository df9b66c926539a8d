// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "builder/fix/transaction.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

// A holder may have removed the file after we opened it, and a lock on a removed file is worthless.
bool is_still_at(const std::string& path, const struct stat& opened) {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 && now.st_ino == opened.st_ino && now.st_dev == opened.st_dev;
}

}  // namespace

Result<Lock> Lock::take(const std::string& folder) {
  SCANKIT_CHECK(check_own_folder(folder));
  SCANKIT_CHECK(make_directories(folder));
  const std::string path = folder + "/lock";
  // The content is replaced below, so a link or a second name of another file is refused. O_NONBLOCK: a FIFO
  // at this name must not stop us.
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat info {};
  const bool opened = fd.get() >= 0 && ::fstat(fd.get(), &info) == 0;
  if ((opened && (!S_ISREG(info.st_mode) || info.st_nlink > 1)) ||
      (!opened && (errno == ELOOP || errno == EISDIR)))
    return Error{Errc::PermissionDenied, message("{} is not a lock file created by scankit", path),
                 message("remove {}", path)};
  if (!opened)
    return Error{errno == EACCES || errno == EROFS ? Errc::PermissionDenied : Errc::Io,
                 message("cannot open {}: {}", path, std::strerror(errno)), ""};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = "";
    if (::pread(fd.get(), holder, sizeof(holder) - 1, 0) < 0) holder[0] = '\0';
    return Error{Errc::Conflict,
                 message("another scankit is changing this environment (process {})",
                         static_cast<const char*>(holder)),
                 message("wait until it ends")};
  }
  if (!is_still_at(path, info))
    return Error{Errc::Conflict, message("another scankit has just finished changing this environment"),
                 message("run it again")};
  const std::string id = std::to_string(::getpid());
  // Only the message above reads it.
  if (::ftruncate(fd.get(), 0) == 0) (void)!::pwrite(fd.get(), id.data(), id.size(), 0);
  return Lock(std::move(fd), folder);
}

void Lock::leave_no_trace() && {
  struct stat own {};
  if (::fstat(fd_.get(), &own) == 0 && is_still_at(folder_ + "/lock", own))
    ::unlink((folder_ + "/lock").c_str());
  ::rmdir(folder_.c_str());
  fd_ = Descriptor();
}

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t came = 0;
std::array<struct sigaction, kSignals.size()> handlers_before;

void note_signal(int number) { came = number; }

}  // namespace

Interruption::Interruption() {
  came = 0;
  // No SA_RESTART: a signal must interrupt waitpid(2), so that run_installer() can pass it on.
  struct sigaction action = {};
  action.sa_handler = note_signal;  // NOLINT(cppcoreguidelines-pro-type-union-access): as POSIX declares it
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &handlers_before[i]);
    // What `nohup` ignores stays ignored.
    if (handlers_before[i].sa_handler == SIG_IGN)  // NOLINT(cppcoreguidelines-pro-type-union-access)
      ::sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &handlers_before[i], nullptr);
}

int Interruption::signal() { return came; }

Result<void> Interruption::check() {
  if (came == 0) return {};
  return Error{Errc::Conflict, message("interrupted by signal {}", static_cast<int>(came)), ""};
}

}  // namespace scankit::fix
