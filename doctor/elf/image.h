// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/elf/bytes.h"
#include "doctor/host/host.h"

namespace scankit::elf {

inline Error malformed_elf(Message why) { return {Errc::Malformed, std::move(why), ""}; }

// What the first bytes say, for 32-bit and big-endian files too.
struct Identity {
  bool is_64 = true, little_endian = true;
  std::uint8_t os_abi = 0, abi_version = 0;
  std::uint16_t type = 0, machine = 0;
  std::uint32_t flags = 0;
};
Result<Identity> identify_elf(const FileBytes& file);
// "x86_64", "aarch64" as uname prints them; "machine 190" for one without a name.
std::string machine_name(const Identity& identity);

// A program header. `memory_size` may be larger than `file_size`: the rest is zeros (.bss) and has no place
// in the file. Flags and types are those of <elf.h>.
struct Segment {
  std::uint32_t type = 0, flags = 0;
  std::uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
};
struct Section {
  std::string name;  // "" where the file's names are damaged
  std::uint32_t type = 0, info = 0;
  std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
};

// An ELF file as the loader sees it: 64-bit little-endian, through program headers. Section headers, which
// the loader never reads and which may be gone, serve only to find what has no address. Copies share the
// open file.
class Image {
 public:
  // Errc::Malformed: not ELF, or its headers lie outside the file; Errc::Unsupported: 32-bit or big-endian.
  static Result<Image> open(std::shared_ptr<const ByteSource> source);

  const Identity& identity() const { return identity_; }
  const FileBytes& file() const { return file_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // The first of that type.
  std::optional<Segment> segment(std::uint32_t type) const;
  // The offset in the file of the `length` bytes that are mapped at `address`, a virtual address of
  // the file.
  Result<std::uint64_t> offset_of(std::uint64_t address, std::uint64_t length) const;
  Result<Bytes> at_address(std::uint64_t address, std::uint64_t length) const;
  // Bytes of the file from `address` to the end of its segment; 0 for an address that no segment backs.
  std::uint64_t bytes_from(std::uint64_t address) const;
  // Empty where there are none or they are damaged.
  std::vector<Section> sections() const;
  // The part that lies beyond the end of the file, in words; nothing in a whole file.
  std::optional<std::string> missing_part() const;

 private:
  FileBytes file_;
  Identity identity_;
  std::vector<Segment> segments_;
  std::uint64_t section_offset_ = 0;
  std::uint16_t section_count_ = 0, section_entry_ = 0, section_names_ = 0;
};

// Whether the loader has to make the stack executable for this file: PT_GNU_STACK says so, or there is none, which counts as
// a request on x86-64 and aarch64 (glibc, sysdeps/*/stackinfo.h: DEFAULT_STACK_PERMS).
bool requests_executable_stack(const Image& image);

// The NUL-terminated texts in a file's constant data (.rodata*, .data*; all of it where section headers are
// gone), each from `start` on: at most `most` of them, none longer than 512 bytes. It reads a megabyte at a
// time and 64 in all: what comes later in a larger file is not seen.
std::vector<std::string> find_texts(const Image& image, std::string_view start, std::size_t most);

// What a file that should be a shared library really is. The words are those of Extension::file_state.
struct FileState {
  std::string state;    // "elf", "empty", "truncated", "html", "git-lfs", "windows", "not-elf", "unreadable",
                        // "vanished"
  Message detail;       // what was seen, in one line
  std::string machine;  // of an ELF file: "x86_64"
};
FileState file_state(const std::shared_ptr<const ByteSource>& source);
// The same for a file that could not be opened or read.
FileState state_of_failure(const Error& error);

}  // namespace scankit::elf
