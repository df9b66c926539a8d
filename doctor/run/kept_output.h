// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace scankit {

// What remains of a stream of any length: its end, and the place where its first error begins. A build or a
// training run can print gigabytes after the traceback that explains its death.
class KeptOutput {
 public:
  static constexpr std::size_t kEnd = 256u << 10;        // bytes of the end
  static constexpr std::size_t kFirstError = 64u << 10;  // bytes from the first error on
  static constexpr std::size_t kBeforeError = 4u << 10;  // and bytes that precede it

  void append(std::string_view bytes);
  // Everything, or the first error and the end with a line between them that says how much is missing.
  std::string text() const;
  std::uint64_t bytes() const { return total_; }
  // Whether a part of the stream is missing in text().
  bool is_cut() const;
  // The last byte; '\n' if there is none.
  char last() const;

 private:
  void find_first_error(std::string_view bytes);
  std::string end_bytes(std::size_t most) const;

  std::string ring_;            // grows to kEnd, then is written round and round
  std::size_t at_ = 0;          // where the next byte of a full ring goes, which is also its oldest byte
  std::uint64_t total_ = 0;     // bytes so far
  std::string first_;           // from kBeforeError before the first error on
  std::uint64_t first_at_ = 0;  // where first_ begins in the stream
  bool found_ = false;
};

}  // namespace scankit
