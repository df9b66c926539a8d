// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// A name, or a whole version, that a library of a process needs and that the file which the loader took for
// it does not have. Another file of the same soname may well have it.
struct Misfit {
  std::string needed_by;        // file
  std::string name, version;    // name: "" where the version itself is not defined; version: "" for none
  std::string soname, library;  // what was asked for, and the file that the loader took
  std::string found_by;  // "LD_LIBRARY_PATH /x", "RPATH of FILE /x", "/etc/ld.so.cache", "default /lib"
  std::string wheel;  // requirement that names the installed wheel of that file: "nvidia-nccl-cu13==2.27.7"
  std::string without_library_path;  // the file that the loader takes without that variable, where it fits
};

// One requirement of torch's metadata, or of the cuda-toolkit package that it names, on an nvidia-* wheel.
struct CudaPin {
  std::string requirement;      // "nvidia-nccl-cu13==2.28.9"
  std::string name, installed;  // "nvidia-nccl-cu13", "2.27.7"; installed: "" where it is not
  bool met = false;
};

}  // namespace scankit
