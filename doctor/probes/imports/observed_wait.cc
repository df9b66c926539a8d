// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/observed_wait.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "doctor/base/say.h"

namespace scankit {
namespace {

struct Call {
  long number;
  std::string_view name;
  bool on_descriptor;  // the first argument is one
};
constexpr std::array kCalls{
    Call{SYS_read, "read", true},
    Call{SYS_pread64, "pread", true},
    Call{SYS_write, "write", true},
    Call{SYS_ioctl, "ioctl", true},
    Call{SYS_flock, "flock", true},
    Call{SYS_fcntl, "fcntl", true},
    Call{SYS_recvfrom, "recvfrom", true},
    Call{SYS_connect, "connect", true},
    Call{SYS_openat, "openat", false},
    Call{SYS_futex, "futex", false},
    Call{SYS_ppoll, "ppoll", false},
    Call{SYS_wait4, "wait4", false},
    Call{SYS_nanosleep, "nanosleep", false},
    Call{SYS_clock_nanosleep, "clock_nanosleep", false},
#ifdef SYS_poll
    Call{SYS_poll, "poll", false},
    Call{SYS_select, "select", false},
#endif
};

std::string first_word_of_file(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

std::string link_target(const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace

std::string kernel_wait(int pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  std::ifstream in(proc + "/syscall");  // "73 0x3 0x6 ..." while it waits, "running" else
  std::string number, argument;
  in >> number >> argument;
  const auto call =
      std::ranges::find_if(kCalls, [&](const Call& c) { return std::to_string(c.number) == number; });
  if (call != kCalls.end()) {
    std::string text(call->name);
    if (!call->on_descriptor) return text;
    const auto descriptor = std::strtoul(argument.c_str(), nullptr, 16);
    const std::string file = link_target(proc + "/fd/" + std::to_string(descriptor));
    return file.empty() ? text : say("{} on {}", text, file);
  }
  if (number == "running") return say("nothing: it computes");
  const std::string channel = first_word_of_file(proc + "/wchan");
  return channel == "0" ? "" : channel;
}

HangWatch::HangWatch(std::chrono::milliseconds timeout)
    : thread_([this, timeout] { watch(timeout - std::min(timeout / 5, std::chrono::milliseconds(500))); }) {}

void HangWatch::channel(std::string_view bytes) {
  const std::lock_guard guard(lock_);
  if (first_line_.find('\n') == std::string::npos) first_line_.append(bytes.substr(0, 400));
}

std::string HangWatch::finish() {
  {
    const std::lock_guard guard(lock_);
    ended_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
  return seen_;
}

void HangWatch::watch(std::chrono::milliseconds patience) {
  std::unique_lock guard(lock_);
  if (over_.wait_for(guard, patience, [this] { return ended_; })) return;
  constexpr std::string_view kKey = "\"pid\": ";  // json.dumps writes it so
  const auto at = first_line_.find(kKey);
  if (at == std::string::npos) return;
  const long pid = std::strtol(first_line_.c_str() + at + kKey.size(), nullptr, 10);
  if (pid > 0) seen_ = kernel_wait(static_cast<int>(pid));
}

}  // namespace scankit
