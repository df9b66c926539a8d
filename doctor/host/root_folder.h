// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/files.h"
#include "doctor/base/result.h"
#include "doctor/host/host.h"

namespace scankit {

// An unpacked system below a folder, opened by descriptors: whoever exchanges folders and links below it
// while it is read cannot lead a path out of it (a container's root may be one that runs). A path that is
// resolved first and opened afterwards could be.
class RootFolder {
 public:
  RootFolder(std::string path, RootAccess access);

  // As open(2) of a path that begins at the root: links, ".." and absolute
  // ones too, stay below it. `flags` are those of open(2) that make no file;
  // with O_NOFOLLOW a link in the last place is opened itself (O_PATH).
  Result<Descriptor> open(const std::string& path, int flags) const;
  // The path below the root that is free of links.
  Result<std::string> resolve(const std::string& path) const;

 private:
  struct Place;
  Result<Place> walk(const std::string& path, bool last_too) const;
  Result<Descriptor> open_by_walk(const std::string& path, int flags) const;

  std::string path_;
  Descriptor root_;
  bool kernel_ = false;  // openat2(2) is here and allowed
};

}  // namespace scankit
