// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/streams.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace scankit::run {
namespace {

// Never a number from 0 to 2: scankit may have been started with a standard stream closed.
Descriptor above_standard(int fd) {
  if (fd > 2 || fd < 0) return Descriptor(fd);
  Descriptor moved(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  ::close(fd);
  return moved;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

// The inner terminal is not the command's controlling terminal: that stays the outer one, with its ^C, ^Z and
// foreground group. It has the modes of the outer one, without output processing (OPOST), which the outer
// one does: done twice, each "\n" would become "\r\r\n".
bool open_terminal(RelayedStream& stream) {
  stream.ours = above_standard(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  // No grantpt(3): devpts gives the user the terminal.
  if (stream.ours.get() < 0 || ::unlockpt(stream.ours.get()) != 0) return false;
#ifdef TIOCGPTPEER
  // Opens the other end without its path: /dev/pts may belong to another mount namespace.
  stream.childs = above_standard(::ioctl(stream.ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
#endif
  if (stream.childs.get() < 0) {
    char path[64];
    if (::ptsname_r(stream.ours.get(), path, sizeof(path)) != 0) return false;
    stream.childs = above_standard(::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  if (stream.childs.get() < 0) return false;
  if (::tcgetattr(stream.outer, &stream.modes) != 0) return false;
  stream.modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  if (::tcsetattr(stream.childs.get(), TCSANOW, &stream.modes) != 0) return false;
  return ::tcgetattr(stream.ours.get(), &stream.modes) == 0;
}

bool open_pipe(RelayedStream& stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  stream.ours = above_standard(ends[0]);
  stream.childs = above_standard(ends[1]);
  return stream.ours.get() >= 0 && stream.childs.get() >= 0;
}

std::uint64_t end_of_file(int fd, const struct stat& info) {
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t at = appends ? info.st_size : ::lseek(fd, 0, SEEK_CUR);
  return static_cast<std::uint64_t>(std::max<off_t>(at, 0));
}

// Index of the new stream in `streams.relayed`, -1 if the descriptor stays as it is.
int relay(int fd, const struct stat& info, Streams& streams) {
  RelayedStream stream;
  stream.outer = fd;
  stream.terminal = S_ISCHR(info.st_mode) && ::isatty(fd) != 0;
  if (S_ISREG(info.st_mode)) streams.files.push_back({fd, end_of_file(fd, info)});
  if (!stream.terminal && !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) return -1;
  if (!(stream.terminal ? open_terminal(stream) : open_pipe(stream))) return -1;
  ::fcntl(stream.ours.get(), F_SETFL, O_NONBLOCK);
  streams.relayed.push_back(std::move(stream));
  return static_cast<int>(streams.relayed.size()) - 1;
}

// The end of a file that the command wrote. Our descriptor may be open for writing only, so it is opened
// again through /proc; where the user may not read it, nothing is known of it.
KeptText end_of(const DirectFile& file) {
  const Descriptor fd(
      ::open(("/proc/self/fd/" + std::to_string(file.descriptor)).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return {};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size <= file.from) return {};
  KeptText kept{"", size - file.from, size - file.from > KeptOutput::kEnd};
  const std::uint64_t length = std::min<std::uint64_t>(kept.bytes, KeptOutput::kEnd);
  kept.text.resize(static_cast<std::size_t>(length));
  const ssize_t got =
      ::pread(fd.get(), kept.text.data(), kept.text.size(), static_cast<off_t>(size - length));
  kept.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return kept;
}

// Bytes read at once, and written at once: a pipe for which poll(2) reports POLLOUT takes PIPE_BUF bytes
// without blocking (pipe(7)).
constexpr std::size_t kReadAtOnce = 64u << 10, kWrittenAtOnce = 4096;

void close_stream(RelayedStream& stream) {
  stream.open = false;
  stream.ours = Descriptor();
}

}  // namespace

void read_stream(RelayedStream& stream) {
  stream.pending.resize(kReadAtOnce);
  stream.written = 0;
  const ssize_t got = ::read(stream.ours.get(), stream.pending.data(), kReadAtOnce);
  const int number = errno;
  stream.pending.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  stream.kept.append(stream.pending);
  mirror_terminal_modes(stream);
  // A terminal without a process at its other end gives EIO.
  if (got == 0 || (got < 0 && number != EAGAIN && number != EINTR)) close_stream(stream);
}

void write_stream(RelayedStream& stream) {
  const std::size_t size = std::min(stream.pending.size() - stream.written, kWrittenAtOnce);
  const ssize_t put = ::write(stream.outer, stream.pending.data() + stream.written, size);
  if (put > 0) stream.written += static_cast<std::size_t>(put);
  if (put >= 0 || errno == EAGAIN || errno == EINTR) return;
  // The command must notice: SIGPIPE or EIO at its next write.
  stream.pending.clear();
  stream.written = 0;
  stream.lost = true;
  close_stream(stream);
}

Streams open_streams() {
  Streams streams;
  streams.relayed.reserve(2);
  struct stat out {
  }, err{};
  const bool has_out = ::fstat(STDOUT_FILENO, &out) == 0, has_err = ::fstat(STDERR_FILENO, &err) == 0;
  const bool one = has_out && has_err && same_file(out, err);
  if (has_out) streams.out = relay(STDOUT_FILENO, out, streams);
  // Both go into one pipe or terminal if they were one: the order of what is written to them is kept.
  if (one)
    streams.err = streams.out;
  else if (has_err)
    streams.err = relay(STDERR_FILENO, err, streams);
  copy_terminal_sizes(streams);
  return streams;
}

void copy_terminal_sizes(Streams& streams) {
  for (const RelayedStream& stream : streams.relayed) {
    struct winsize size {};
    if (stream.terminal && ::ioctl(stream.outer, TIOCGWINSZ, &size) == 0)
      ::ioctl(stream.ours.get(), TIOCSWINSZ, &size);
  }
}

void mirror_terminal_modes(RelayedStream& stream) {
  struct termios now {};
  if (!stream.terminal || ::tcgetattr(stream.ours.get(), &now) != 0) return;
  // ONLCR is the one output mode that programs for a full screen change.
  const tcflag_t newline = ONLCR;
  const struct termios& before = stream.modes;
  const bool same = now.c_iflag == before.c_iflag && now.c_lflag == before.c_lflag &&
                    (now.c_oflag & newline) == (before.c_oflag & newline) &&
                    std::memcmp(now.c_cc, before.c_cc, sizeof(now.c_cc)) == 0;
  stream.modes = now;
  struct termios outer {};
  if (same || ::tcgetattr(stream.outer, &outer) != 0) return;
  outer.c_iflag = now.c_iflag;
  outer.c_lflag = now.c_lflag;
  outer.c_oflag = (outer.c_oflag & ~newline) | (now.c_oflag & newline);
  std::memcpy(outer.c_cc, now.c_cc, sizeof(outer.c_cc));
  ::tcsetattr(stream.outer, TCSANOW, &outer);
}

KeptText kept_text(const Streams& streams) {
  KeptText all;
  const auto add = [&](const KeptText& more) {
    if (!all.text.empty() && all.text.back() != '\n') all.text += '\n';
    all.text += more.text;
    all.bytes += more.bytes;
    all.cut = all.cut || more.cut;
  };
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    for (const DirectFile& file : streams.files)
      if (file.descriptor == descriptor) add(end_of(file));
    for (const RelayedStream& stream : streams.relayed)
      if (stream.outer == descriptor) add({stream.kept.text(), stream.kept.bytes(), stream.kept.is_cut()});
  }
  return all;
}

bool ends_within_line(const Streams& streams) {
  const int screen = streams.err >= 0 ? streams.err : streams.out;
  return screen >= 0 && streams.relayed[static_cast<std::size_t>(screen)].kept.last() != '\n';
}

namespace {

// What begins an error: a Python traceback, and the line of a compiler ("x.cu(3): error: ..."). A longer
// needle is found faster, and most output has none of them.
constexpr std::array<std::string_view, 2> kErrors{"Traceback (most recent call last)", ": error"};
constexpr std::size_t kLongestNeedle = kErrors[0].size();

// memmem(3) is several times as fast as std::string_view::find().
std::size_t position(std::string_view text, std::string_view needle) {
  const void* at = ::memmem(text.data(), text.size(), needle.data(), needle.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

}  // namespace

// Looks for the first error in `bytes`, which follow what was appended before. A needle may begin in the
// bytes before: the last few of them are searched again.
void KeptOutput::find_first_error(std::string_view bytes) {
  const std::string seam = end_bytes(kLongestNeedle - 1);
  const std::size_t again = seam.size();
  std::size_t found = std::string_view::npos;  // counted from `again` bytes before `bytes`
  for (const std::string_view needle : kErrors) {
    found = std::min(found, position(seam + std::string(bytes.substr(0, kLongestNeedle - 1)), needle));
    if (const std::size_t at = position(bytes, needle); at != std::string_view::npos)
      found = std::min(found, at + again);
  }
  if (found == std::string_view::npos) return;
  found_ = true;
  // From the stream's start, then back by as much as is still kept.
  const std::uint64_t error_at = total_ - again + found, oldest = total_ - ring_.size();
  first_at_ = std::max(oldest, error_at > kBeforeError ? error_at - kBeforeError : 0);
  if (first_at_ < total_) first_ = end_bytes(static_cast<std::size_t>(total_ - first_at_));
  first_ += bytes.substr(first_at_ > total_ ? static_cast<std::size_t>(first_at_ - total_) : 0);
}

void KeptOutput::append(std::string_view bytes) {
  constexpr std::size_t kWhole = kBeforeError + kFirstError;
  if (found_) {
    if (first_.size() < kWhole) first_ += bytes.substr(0, kWhole - first_.size());
  } else {
    find_first_error(bytes);
    if (first_.size() > kWhole) first_.resize(kWhole);
  }
  total_ += bytes.size();
  if (bytes.size() > kEnd) bytes.remove_prefix(bytes.size() - kEnd);
  const std::size_t grows = std::min(bytes.size(), kEnd - ring_.size());
  ring_.append(bytes.substr(0, grows));
  bytes.remove_prefix(grows);
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kEnd - at_);
    std::copy_n(bytes.data(), piece, ring_.data() + at_);
    at_ = (at_ + piece) % kEnd;
    bytes.remove_prefix(piece);
  }
}

// At most `most` bytes of the end, in the order of the stream.
std::string KeptOutput::end_bytes(std::size_t most) const {
  most = std::min(most, ring_.size());
  const std::size_t newer = std::min(most, ring_.size() == kEnd ? at_ : 0);
  const std::size_t older = most - newer;
  return ring_.substr(ring_.size() - older) + ring_.substr(at_ - newer, newer);
}

std::string KeptOutput::text() const {
  const std::string end = end_bytes(kEnd);
  const std::uint64_t end_at = total_ - end.size();
  if (!found_ || first_at_ >= end_at) return end;
  const std::uint64_t first_ends = first_at_ + first_.size();
  if (first_ends >= end_at) return first_.substr(0, static_cast<std::size_t>(end_at - first_at_)) + end;
  return first_ + "\n[... " + std::to_string(end_at - first_ends) + " bytes were not kept ...]\n" + end;
}

bool KeptOutput::is_cut() const {
  const std::uint64_t end_at = total_ - ring_.size();
  return end_at > 0 && (!found_ || first_at_ > 0 || first_at_ + first_.size() < end_at);
}

char KeptOutput::last() const {
  if (ring_.empty()) return '\n';
  return ring_[(at_ + ring_.size() - 1) % ring_.size()];
}

}  // namespace scankit::run
