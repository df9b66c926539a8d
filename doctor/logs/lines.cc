// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/lines.h"

namespace scankit {
namespace {

constexpr char kEscape = '\x1b';

// Behind an escape sequence that starts at `at` (ECMA-48: CSI ends with a byte of 0x40..0x7e; OSC, DCS, PM,
// APC and SOS strings end with BEL or ST; others are an intermediate and a final byte). One that does not end
// on the line takes only its introducer along: the error text may follow it.
std::size_t after_escape(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestSequence = 256;
  if (at + 1 >= text.size()) return text.size();
  const char kind = text[at + 1];
  const std::size_t end = std::min(text.size(), at + kLongestSequence);
  if (kind == '[') {
    for (std::size_t i = at + 2; i < end; ++i) {
      if (text[i] >= 0x40 && text[i] <= 0x7e) return i + 1;
      if (text[i] < 0x20) break;
    }
    return at + 2;
  }
  if (kind == ']' || kind == 'P' || kind == '^' || kind == '_' || kind == 'X') {
    for (std::size_t i = at + 2; i < end; ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == '\\') return i + 2;
    }
    return at + 2;
  }
  return kind >= 0x20 && kind <= 0x2f ? std::min(at + 3, text.size()) : at + 2;
}

// Length of the UTF-8 character at `at`; 0 where the bytes are none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead >= 0x80 && (lead < 0xc2 || lead > 0xf4)) return 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

bool is_c1_control(std::string_view text, std::size_t at) {
  return text[at] == '\xc2' && static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

}  // namespace

std::string clean_line(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const char c = raw[i];
    if (c == kEscape) {
      i = after_escape(raw, i);
    } else if (c == '\t') {
      text += ' ';
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      ++i;
    } else if (const std::size_t length = utf8_length(raw, i); length == 0) {
      text += '?';
      ++i;
    } else {
      if (length != 2 || !is_c1_control(raw, i)) text.append(raw, i, length);
      i += length;
    }
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void LineCutter::emit() {
  if (fresh_ > 0) sink_(line_, clean_line(buffer_));
  fresh_ = 0;
}

void LineCutter::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\0') continue;
    if (c == '\n' || c == '\r') {
      emit();
      buffer_.clear();
      if (c == '\n') ++line_;
      pending_ = c != '\n';
      continue;
    }
    pending_ = true;
    buffer_ += c;
    ++fresh_;
    if (buffer_.size() < kLongest) continue;
    emit();
    buffer_.erase(0, buffer_.size() - kOverlap);
  }
}

void LineCutter::finish() {
  emit();
  buffer_.clear();
}

}  // namespace scankit
