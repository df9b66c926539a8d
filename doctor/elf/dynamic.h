// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/elf/image.h"

namespace scankit {

// Names of an object, read one at a time: libtorch_cpu's are
// 10 MB, of which a question needs a few hundred bytes.
class StringTable {
 public:
  StringTable() = default;
  StringTable(FileBytes file, std::uint64_t offset, std::uint64_t size)
      : file_(std::move(file)), offset_(offset), size_(size) {}
  std::uint64_t size() const { return size_; }
  Result<std::string> at(std::uint64_t index) const;
  // `length` bytes from `index`, for those who walk the whole table.
  Result<Bytes> piece(std::uint64_t index, std::uint64_t length) const;

 private:
  FileBytes file_;
  std::uint64_t offset_ = 0, size_ = 0;
};

// PT_DYNAMIC: what the loader goes by.
struct Dynamic {
  bool present = false;             // false: a program linked statically
  std::vector<std::string> needed;  // DT_NEEDED, in the order of the file
  std::string soname, rpath, runpath;
  // A present but empty entry is not a missing one: an empty DT_RUNPATH still hides DT_RPATH.
  bool has_soname = false, has_rpath = false, has_runpath = false;
  bool symbolic = false;        // DT_SYMBOLIC or DF_SYMBOLIC
  bool no_default_lib = false;  // DF_1_NODEFLIB: neither the cache's default folders nor the default folders
  StringTable strings;
  // Addresses, 0 where the entry is missing.
  std::uint64_t string_address = 0, symbols = 0, gnu_hash = 0, sysv_hash = 0, version_symbols = 0;
  std::uint64_t version_needs = 0, version_need_count = 0, version_defs = 0, version_def_count = 0;
};
Result<Dynamic> read_dynamic(const Image& image);

// The GNU build-id in lower-case hex; empty where there is none.
std::string read_build_id(const Image& image);
// The program interpreter (PT_INTERP); empty for a library.
std::string read_interpreter(const Image& image);

}  // namespace scankit
