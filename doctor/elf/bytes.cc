// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/bytes.h"

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit::elf {

std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<Bytes> Bytes::slice(std::uint64_t offset, std::uint64_t length) const {
  if (offset > size_ || length > size_ - offset) return std::nullopt;
  Bytes piece(*this);
  piece.first_ = first_ + offset;
  piece.size_ = length;
  return piece;
}

std::optional<std::string_view> Bytes::c_string(std::uint64_t offset) const {
  if (offset >= size_) return std::nullopt;
  const std::string_view rest = text().substr(offset);
  const auto end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

// Checks against the size that the file had when it was opened. A file that has become shorter since then
// fails in source_->read().
Result<void> FileBytes::read_into(std::uint64_t offset, void* into, std::size_t length) const {
  const std::uint64_t whole = size();
  if (offset > whole || length > whole - offset)
    return Error{Errc::Malformed,
                 message("bytes {} to +{} are outside the file of {} bytes", offset, length, whole), ""};
  if (length == 0) return {};
  return source_->read(offset, into, length);
}

Result<Bytes> FileBytes::slice(std::uint64_t offset, std::uint64_t length, std::uint64_t limit) const {
  if (length > limit)
    return Error{Errc::Malformed, message("a table of {} bytes is implausibly large", length), ""};
  const std::uint64_t whole = size();
  // Before the allocation: a hostile length must not cost memory that the file does not have.
  if (offset > whole || length > whole - offset) return read_into(offset, nullptr, length).error();
  std::string data(length, '\0');
  SCANKIT_CHECK(read_into(offset, data.data(), data.size()));
  return Bytes(std::move(data));
}

// Most names are short: a step of 256 bytes usually reads the whole name with one pread.
Result<std::string> FileBytes::c_string(std::uint64_t offset, std::uint64_t limit) const {
  std::string text;
  std::uint64_t at = offset;
  while (text.size() < limit) {
    const std::uint64_t whole = size();
    if (at >= whole) break;
    char step[256];
    const std::size_t length = std::min(
        {sizeof step, static_cast<std::size_t>(whole - at), static_cast<std::size_t>(limit - text.size())});
    SCANKIT_CHECK(read_into(at, step, length));
    const std::string_view got(step, length);
    const auto end = got.find('\0');
    text += got.substr(0, end);
    if (end != std::string_view::npos) return text;
    at += length;
  }
  return Error{Errc::Malformed, message("the string at byte {} has no end", offset), ""};
}

}  // namespace scankit::elf
