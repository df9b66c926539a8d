// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/files.h"

namespace scankit {

// Serialises those who change one environment. The kernel lets go of it when the holder dies.
class Lock {
 public:
  // Errc::Conflict, with the holder's process id, where somebody else holds it.
  static Result<Lock> take(const std::string& folder);
  int descriptor() const { return fd_.get(); }  // a child that inherits it holds the lock too
  // Lets go of it, and takes the lock file and a folder that holds nothing else out of the environment.
  void leave_no_trace() &&;

 private:
  Lock(Descriptor fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  Descriptor fd_;
  std::string folder_;
};

}  // namespace scankit
