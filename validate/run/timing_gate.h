// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <string>
#include <utility>

#include "doctor/base/files.h"

namespace scankit::validate {

// The lock for which a child waits before it times anything (harness/timing.py): it is held while another
// child of the same run computes. flock() locks end with the last process that has the open file, however
// that process ends.
class Gate {
 public:
  explicit Gate(std::string path) : path_(std::move(path)) {
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    closed_ = file_.get() >= 0 && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  }
  // Unlocks explicitly: closing the descriptor is not enough, because the process that watches over
  // scankit's children may have inherited it.
  void open() {
    if (closed_.exchange(false)) ::flock(file_.get(), LOCK_UN);
  }
  bool closed() const { return closed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  std::atomic<bool> closed_{false};
};

}  // namespace scankit::validate
