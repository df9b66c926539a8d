// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/kept_output.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace scankit {
namespace {

// What begins an error: a Python traceback, and the line of a compiler ("x.cu(3): error: ..."). A longer
// needle is found faster, and most output has none of them.
constexpr std::array<std::string_view, 2> kErrors{"Traceback (most recent call last)", ": error"};
constexpr std::size_t kLongestNeedle = kErrors[0].size();

// memmem(3) is several times as fast as std::string_view::find().
std::size_t position(std::string_view text, std::string_view needle) {
  const void* at = ::memmem(text.data(), text.size(), needle.data(), needle.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

}  // namespace

// Looks for the first error in `bytes`, which follow what was appended before. A needle may begin in the
// bytes before: the last few of them are searched again.
void KeptOutput::find_first_error(std::string_view bytes) {
  const std::string seam = end_bytes(kLongestNeedle - 1);
  const std::size_t again = seam.size();
  std::size_t found = std::string_view::npos;  // counted from `again` bytes before `bytes`
  for (const std::string_view needle : kErrors) {
    found = std::min(found, position(seam + std::string(bytes.substr(0, kLongestNeedle - 1)), needle));
    if (const std::size_t at = position(bytes, needle); at != std::string_view::npos)
      found = std::min(found, at + again);
  }
  if (found == std::string_view::npos) return;
  found_ = true;
  // From the stream's start, then back by as much as is still kept.
  const std::uint64_t error_at = total_ - again + found, oldest = total_ - ring_.size();
  first_at_ = std::max(oldest, error_at > kBeforeError ? error_at - kBeforeError : 0);
  if (first_at_ < total_) first_ = end_bytes(static_cast<std::size_t>(total_ - first_at_));
  first_ += bytes.substr(first_at_ > total_ ? static_cast<std::size_t>(first_at_ - total_) : 0);
}

void KeptOutput::append(std::string_view bytes) {
  constexpr std::size_t kWhole = kBeforeError + kFirstError;
  if (found_) {
    if (first_.size() < kWhole) first_ += bytes.substr(0, kWhole - first_.size());
  } else {
    find_first_error(bytes);
    if (first_.size() > kWhole) first_.resize(kWhole);
  }
  total_ += bytes.size();
  if (bytes.size() > kEnd) bytes.remove_prefix(bytes.size() - kEnd);
  const std::size_t grows = std::min(bytes.size(), kEnd - ring_.size());
  ring_.append(bytes.substr(0, grows));
  bytes.remove_prefix(grows);
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kEnd - at_);
    std::copy_n(bytes.data(), piece, ring_.data() + at_);
    at_ = (at_ + piece) % kEnd;
    bytes.remove_prefix(piece);
  }
}

// At most `most` bytes of the end, in the order of the stream.
std::string KeptOutput::end_bytes(std::size_t most) const {
  most = std::min(most, ring_.size());
  const std::size_t newer = std::min(most, ring_.size() == kEnd ? at_ : 0);
  const std::size_t older = most - newer;
  return ring_.substr(ring_.size() - older) + ring_.substr(at_ - newer, newer);
}

std::string KeptOutput::text() const {
  const std::string end = end_bytes(kEnd);
  const std::uint64_t end_at = total_ - end.size();
  if (!found_ || first_at_ >= end_at) return end;
  const std::uint64_t first_ends = first_at_ + first_.size();
  if (first_ends >= end_at) return first_.substr(0, static_cast<std::size_t>(end_at - first_at_)) + end;
  return first_ + "\n[... " + std::to_string(end_at - first_ends) + " bytes were not kept ...]\n" + end;
}

bool KeptOutput::is_cut() const {
  const std::uint64_t end_at = total_ - ring_.size();
  return end_at > 0 && (!found_ || first_at_ > 0 || first_at_ + first_.size() < end_at);
}

char KeptOutput::last() const {
  if (ring_.empty()) return '\n';
  return ring_[(at_ + ring_.size() - 1) % ring_.size()];
}

}  // namespace scankit
