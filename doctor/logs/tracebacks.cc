// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/tracebacks.h"

namespace scankit {
namespace {

constexpr std::uint64_t kTail = 30;  // lines that a message may go on behind the last line of its traceback

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

void Tracebacks::line(std::uint64_t number, const std::string& text) {
  if (holds(text, "During handling of the above exception") ||
      holds(text, "The above exception was the direct cause")) {
    chained_ = true;
    return;
  }
  // Until the traceback that follows at once; any other line in between ends it.
  if (holds(text, "Exception ignored in")) {
    next_ignored_ = true;
    return;
  }
  const auto head = text.find("Traceback (most recent call last)");
  // A traceback after one of the two connecting lines continues the chain.
  if (head != std::string::npos) {
    if (!chained_) ++chain_;
    chained_ = false;
    column_ = head;
    inside_ = true;
    boxed_ = holds(text, "─ Traceback");
    ignored_ = next_ignored_;
    next_ignored_ = false;
    return;
  }
  next_ignored_ = false;
  if (!inside_) return;
  if (boxed_) {
    inside_ = !text.starts_with("╰");
    ended_ = number + 1;
    return;
  }
  // Deeper lines are frames and source lines. The first line at the column ends the traceback:
  // the exception.
  if (text.size() <= column_ || text[column_] == ' ') return;
  inside_ = false;
  ended_ = number;
}

std::uint64_t Tracebacks::chain(std::uint64_t number) const {
  return chain_ > 0 && (inside_ || number <= ended_ || number - ended_ <= kTail) ? chain_ : 0;
}

}  // namespace scankit
