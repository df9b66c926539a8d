// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/progress_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "doctor/base/utf8.h"

namespace scankit {
namespace {

constexpr std::size_t kShortestWords = 12;  // below that they say nothing: better the line loses its limit
constexpr std::chrono::seconds kShown{1};   // an age below it is no news
constexpr std::uint64_t kMegabyte = 1000000;

char32_t code_point(std::string_view sequence) {
  constexpr std::array<unsigned, 5> kMask{0, 0x7f, 0x1f, 0x0f, 0x07};
  auto point = static_cast<char32_t>(static_cast<unsigned char>(sequence[0]) & kMask[sequence.size()]);
  for (const char c : sequence.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return point;
}

// Unicode's East Asian Width W and F (UAX 11), and the marks of Latin, by their blocks.
std::size_t columns_of_letter(char32_t point) {
  if (point >= 0x300 && point <= 0x36f) return 0;
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kWide{{{0x1100, 0x115f},
                                                                {0x2e80, 0xa4cf},
                                                                {0xac00, 0xd7a3},
                                                                {0xf900, 0xfaff},
                                                                {0xfe30, 0xfe6f},
                                                                {0xff00, 0xff60},
                                                                {0x1f300, 0x1faff},
                                                                {0x20000, 0x3fffd}}};
  const auto holds = [&](const auto& block) { return point >= block.first && point <= block.second; };
  return std::ranges::any_of(kWide, holds) ? 2 : 1;
}

// Calls `take` with each letter and its columns, until it answers false.
template <typename Take>
void each_letter(std::string_view text, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence_length(text, at), 1);
    const std::string_view letter = text.substr(at, length);
    if (!take(letter, columns_of_letter(code_point(letter)))) return;
    at += length;
  }
}

std::string fraction(std::uint64_t done, std::uint64_t total) {
  return std::to_string(std::min(done, total)) + "/" + std::to_string(total);
}

// "120/531 MB (22 %)"; without a size only what has come.
std::string bytes_text(const ProgressStep& step) {
  if (step.size < kMegabyte)
    return step.have < kMegabyte ? "" : std::to_string(step.have / kMegabyte) + " MB";
  const std::uint64_t percent = std::min(step.have, step.size) * 100 / step.size;
  return fraction(step.have / kMegabyte, step.size / kMegabyte) + " MB (" + std::to_string(percent) + " %)";
}

std::string age_text(const ProgressStep& step) {
  return step.age < kShown ? "" : std::to_string(step.age.count()) + " s";
}

// "[12/90, 34 s] " of the innermost step that knows how many things it has to do.
std::string head_of(const std::vector<ProgressStep>& steps) {
  const auto counted =
      std::find_if(steps.rbegin(), steps.rend(), [](const ProgressStep& step) { return step.total > 0; });
  if (counted == steps.rend()) return "";
  std::string text = "[" + fraction(counted->done, counted->total);
  const std::string age = counted == steps.rbegin() ? "" : age_text(*counted);
  if (!age.empty()) text += ", " + age;
  return text + "] ";
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  each_letter(text, [&](std::string_view, std::size_t wide) {
    columns += wide;
    return true;
  });
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::string dots = columns >= kShortestWords ? "..." : "";
  std::size_t left = columns - dots.size(), bytes = 0;
  each_letter(text, [&](std::string_view letter, std::size_t wide) {
    if (wide > left) return false;
    left -= wide;
    bytes += letter.size();
    return true;
  });
  return std::string(text.substr(0, bytes)) + dots;
}

std::string progress_text(const std::vector<ProgressStep>& steps, std::size_t columns) {
  if (steps.empty()) return "";
  const ProgressStep& now = steps.back();
  const auto named =
      std::find_if(steps.rbegin(), steps.rend(), [](const ProgressStep& step) { return !step.what.empty(); });
  const std::string head = head_of(steps), what = named == steps.rend() ? "" : named->what;
  std::string numbers, age = age_text(now), limit;
  if (const std::string bytes = bytes_text(now); !bytes.empty()) numbers += "  " + bytes;
  if (!age.empty()) numbers += "  " + age;
  if (!age.empty() && !now.limit.empty()) limit = " (" + now.limit + ")";
  const std::size_t fixed = columns_of(head) + columns_of(numbers);
  if (fixed + columns_of(limit) + std::min(columns_of(what), kShortestWords) > columns) limit.clear();
  const std::size_t taken = fixed + columns_of(limit);
  return cut_to(head + cut_to(what, columns > taken ? columns - taken : 0) + numbers + limit, columns);
}

}  // namespace scankit
