// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <string>
#include <utility>

#include "doctor/base/files.h"

namespace scankit::validate {

// What a child waits for before it times anything: a lock that ends with us, however we end.
class Gate {
 public:
  explicit Gate(std::string path) : path_(std::move(path)) {
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    closed_ = file_.get() >= 0 && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  }
  // Closing would not do: the process that watches over our children may have the descriptor too.
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
