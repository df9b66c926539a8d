// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/elf/symbols.h"

namespace scankit {
class Host;
}

namespace scankit::elf {

// One shared library or program, opened for questions.
struct ElfLibrary {
  std::string path;
  std::uint64_t device = 0, inode = 0;
  Image image;
  Dynamic dynamic;
  Symbols symbols;
};
// The error's message is what the loader would say where it
// says something: "file too short", "invalid ELF header".
Result<std::shared_ptr<const ElfLibrary>> open_library(const Host& host, const std::string& path);

// Libraries by path, so that the processes that are simulated read each once. Only successes are kept: a
// path that fails is tried again. `host` must outlive the cache.
class LibraryCache {
 public:
  explicit LibraryCache(const Host& host) : host_(&host) {}
  Result<std::shared_ptr<const ElfLibrary>> open(const std::string& path);
  // One that was opened before: what is said of a file must all be of the same bytes, even if it is replaced.
  void keep(std::shared_ptr<const ElfLibrary> library);
  // Remembered: the loader asks for the same few folders over and over.
  bool has_folder(const std::string& path);
  const Host& host() const { return *host_; }

 private:
  const Host* host_;
  std::map<std::string, std::shared_ptr<const ElfLibrary>> known_;
  std::map<std::string, bool> folders_;
};

// "old", "new" or "unknown": which std::string the C++ binary of torch uses, from libc10.so's constructors of
// c10::Error. `reason` says which name decided, or why none did.
std::string string_abi_of_torch(const Host& host, const std::string& libc10_path, Message& reason);

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

}  // namespace scankit::elf
