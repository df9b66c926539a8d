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

 private:
  explicit Lock(Descriptor fd) : fd_(std::move(fd)) {}
  Descriptor fd_;
};

}  // namespace scankit
