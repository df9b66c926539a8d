// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

// The only ways to touch bytes of an examined file. Numbers from a file are hostile: nothing here hands out a
// pointer, and no caller may write `a + b` on such numbers, because every sum that could wrap is made below.
namespace scankit::elf {

// Nothing where the result does not fit into 64 bits.
std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b);
std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b);

// A piece of a file in memory. Slices share the storage. A view (c_string, text) is valid as long as one of
// the slices lives.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::string data)
      : owner_(std::make_shared<const std::string>(std::move(data))), size_(owner_->size()) {}

  std::uint64_t size() const { return size_; }
  // Nothing where the `length` bytes from `offset` are not all inside.
  std::optional<Bytes> slice(std::uint64_t offset, std::uint64_t length) const;
  // The i-th T of a table that starts at the front.
  template <class T>
  std::optional<T> element(std::uint64_t i) const {
    const auto offset = checked_multiply(i, sizeof(T));
    if (!offset) return std::nullopt;
    return read<T>(*offset);
  }
  // Copies the bytes, so `offset` needs no alignment. The byte order is the host's, which is little-endian
  // on every machine that scankit runs on; image.cc swaps the fields that it reads from big-endian files.
  template <class T>
  std::optional<T> read(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (offset > size_ || size_ - offset < sizeof(T)) return std::nullopt;
    T value{};
    owner_->copy(reinterpret_cast<char*>(&value), sizeof(T), first_ + offset);
    return value;
  }
  // The NUL-terminated text at `offset`; nothing where no NUL follows inside.
  std::optional<std::string_view> c_string(std::uint64_t offset) const;
  std::string_view text() const {
    return owner_ ? std::string_view(*owner_).substr(first_, size_) : std::string_view();
  }

 private:
  std::shared_ptr<const std::string> owner_;
  std::uint64_t first_ = 0, size_ = 0;
};

// A file of which only the pieces asked for are read.
class FileBytes {
 public:
  static constexpr std::uint64_t kPieceLimit = 64u << 20;  // no honest table of a shared library is longer

  FileBytes() = default;
  explicit FileBytes(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}
  std::uint64_t size() const { return source_ ? source_->size() : 0; }
  // Errc::Malformed outside the file or beyond `limit`.
  Result<Bytes> slice(std::uint64_t offset, std::uint64_t length, std::uint64_t limit = kPieceLimit) const;
  template <class T>
  Result<T> read(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (auto got = read_into(offset, &value, sizeof(T)); !got) return got.error();
    return value;
  }
  // The NUL-terminated text at `offset`, read in small steps; its NUL is among the first `limit` bytes.
  Result<std::string> c_string(std::uint64_t offset, std::uint64_t limit = 64u << 10) const;

 private:
  Result<void> read_into(std::uint64_t offset, void* into, std::size_t length) const;
  std::shared_ptr<const ByteSource> source_;
};

// Numbers as ELF files and fatbins have them, on a host of any byte order.

template <class T>
void append_little_endian(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

// The caller has checked that the bytes are there.
template <class T>
T read_little_endian(std::string_view bytes, std::size_t at) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

// Appends zeros until the length is a multiple of `alignment`.
inline void pad_to(std::string& out, std::size_t alignment) {
  out.append((alignment - out.size() % alignment) % alignment, '\0');
}

}  // namespace scankit::elf
