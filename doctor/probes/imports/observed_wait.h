// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace scankit {

// What the kernel says that a process waits for: "flock on /tmp/build/lock", "futex", "" where it does not
// say. Reads /proc/PID/syscall, wchan and fd (proc(5)).
std::string kernel_wait(int pid);

// Looks at a child shortly before its time is over. The child's pid comes with its first line on the channel.
class HangWatch {
 public:
  explicit HangWatch(std::chrono::milliseconds timeout);
  ~HangWatch() { (void)finish(); }
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  void channel(std::string_view bytes);  // ProcessRequest::on_channel
  std::string finish();                  // what was seen; "" where the child ended in time

 private:
  void watch(std::chrono::milliseconds patience);

  std::mutex lock_;
  std::condition_variable over_;
  bool ended_ = false;
  std::string first_line_, seen_;
  std::thread thread_;
};

}  // namespace scankit
