// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

class Host;

// "old", "new" or "unknown": which std::string the C++ binary of torch uses, from libc10.so's constructors of
// c10::Error. `reason` says which name decided, or why none did.
std::string string_abi_of_torch(const Host& host, const std::string& libc10_path, std::string& reason);

// What a library says of itself. Fails where the file is not a whole shared library.
struct LibraryFacts {
  std::string path, soname, build_id;
  std::vector<std::string> needed;
};
Result<LibraryFacts> read_library_facts(const Host& host, const std::string& path);

// The newest version with this prefix ("GLIBCXX_", "GLIBC_", "CXXABI_") that the library defines, without the
// prefix; empty where there is none.
Result<std::string> newest_defined_version(const Host& host, const std::string& path,
                                           const std::string& prefix);

}  // namespace scankit
