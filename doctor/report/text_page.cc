// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "doctor/report/text.h"

namespace scankit::report {
namespace {

// In bytes. A shorter path is easier to read than a name for it.
constexpr std::size_t kLong = 30;
constexpr std::size_t kOften = 2;

// Bytes above 0x7f belong to a letter of UTF-8, and so to a name.
bool part_of_a_name(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80 || c == '_' || c == '-' || c == '.' || c == '+' || c == '~';
}

// Punctuation that stands at a path without a space in Chinese: U+2018 to U+201F, U+3000 to U+303F, and the full-width
// forms U+FF01 to U+FF0F and U+FF1A to U+FF20.
bool is_wide_punctuation(std::string_view three) {
  if (three.size() != 3) return false;
  const auto last = static_cast<unsigned char>(three[2]);
  if (three.starts_with("\xE2\x80")) return last >= 0x98 && last <= 0x9F;
  if (three.starts_with("\xE3\x80")) return true;
  return three.starts_with("\xEF\xBC") && ((last >= 0x81 && last <= 0x8F) || (last >= 0x9A && last <= 0xA0));
}

// The first place at or after `from` where `directory` is a whole path or the beginning of one at a
// slash: not a part of another name, nor the end of a longer path. A full stop after it ends a sentence.
std::size_t find_directory(const std::string& text, const std::string& directory, std::size_t from) {
  for (auto at = text.find(directory, from); at != std::string::npos; at = text.find(directory, at + 1)) {
    const std::string_view all = text;
    const bool begins = at == 0 || (at >= 3 && is_wide_punctuation(all.substr(at - 3, 3))) ||
                        !(part_of_a_name(text[at - 1]) || text[at - 1] == '/' || text[at - 1] == '$');
    const std::size_t end = at + directory.size();
    const bool a_dot =
        end < text.size() && text[end] == '.' && (end + 1 == text.size() || text[end + 1] == ' ');
    const bool ends =
        end == text.size() || a_dot || is_wide_punctuation(all.substr(end, 3)) || !part_of_a_name(text[end]);
    if (begins && ends) return at;
  }
  return std::string::npos;
}

// Debian's Python uses dist-packages.
bool is_packages(const std::string& path) {
  return path.ends_with("/site-packages") || path.ends_with("/dist-packages");
}

}  // namespace

void Legend::offer(const std::string& name, const std::string& directory) {
  if (directory.size() <= kLong || !directory.starts_with("/")) return;
  if (std::ranges::find(offered_, directory, &std::pair<std::string, std::string>::second) != offered_.end())
    // The longest path comes first, so that $SITE is found in a path below both $SITE and $ENV.
    return;
  const auto longer = [&](const auto& one) { return one.second.size() >= directory.size(); };
  offered_.insert(std::ranges::partition_point(offered_, longer), {name, directory});
}

// Only directories that occur at least twice get a name. Each count is made after the longer directories
// were replaced.
void Legend::settle(const std::vector<std::string>& texts) {
  std::vector<std::string> left = texts;
  used_.clear();
  for (const auto& [name, directory] : offered_) {
    std::size_t found = 0;
    for (const std::string& text : left)
      for (auto at = find_directory(text, directory, 0); at != std::string::npos;
           at = find_directory(text, directory, at + 1))
        ++found;
    if (found < kOften) continue;
    std::string numbered = "$" + name;
    for (int n = 2;
         // Two directories of one name become $SITE and $SITE2, in the order in which they
         // get their names.
         std::ranges::find(used_, numbered, &std::pair<std::string, std::string>::first) != used_.end();)
      numbered = "$" + name + std::to_string(n++);
    used_.emplace_back(numbered, directory);
    for (std::string& text : left) text = shortened(std::move(text));
  }
}

std::string Legend::shortened(std::string text) const {
  for (const auto& [name, directory] : used_)
    for (auto at = find_directory(text, directory, 0); at != std::string::npos;
         at = find_directory(text, directory, at + name.size()))
      text.replace(at, directory.size(), name);
  return text;
}

Legend legend_of(const Snapshot& snapshot) {
  Legend legend;
  if (!snapshot.python.present()) return legend;
  const Python& python = snapshot.python.value;
  for (const PathEntry& entry : python.sys_path)
    if (is_packages(entry.path)) legend.offer("SITE", entry.path);
  legend.offer("ENV", python.prefix);
  return legend;
}

// Takes the legend by value, because settle() depends on the text.
std::string with_legend(Legend legend, const std::string& text, bool (*is_command)(const std::string& line)) {
  std::vector<std::string> lines, prose;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (!is_command(line)) prose.push_back(line);
  }
  legend.settle(prose);
  std::string out;
  for (const std::string& line : lines) out += (is_command(line) ? line : legend.shortened(line)) + "\n";
  if (!legend.entries().empty()) out += "\n";
  for (const auto& [name, directory] : legend.entries()) out += name + " = " + directory + "\n";
  return out;
}

// Symbols in UTF-8 with their ASCII form and their colour (ECMA-48, SGR).
const Mark kError{"\xE2\x9C\x97", "x", "\x1b[1;31m"}, kWarning{"!", "!", "\x1b[1;33m"},
    kNote{"\xC2\xB7", "-", "\x1b[1;36m"}, kUnknown{"?", "?", "\x1b[1;35m"},
    kGood{"\xE2\x9C\x93", "+", "\x1b[1;32m"};

namespace {

// The words are translated when they are printed, which a constant could not be.
std::string mark_word(const Mark& mark) {
  if (&mark == &kError) return say("ERROR");
  if (&mark == &kWarning) return say("WARNING");
  if (&mark == &kNote) return say("NOTE");
  return &mark == &kUnknown ? say("UNKNOWN") : say("OK");
}

}  // namespace

const Mark& mark_of(Severity severity) {
  if (severity == Severity::Error) return kError;
  return severity == Severity::Warning ? kWarning : kNote;
}

std::string Page::in_bold(const std::string& text) const {
  return style_.color && !text.empty() ? "\x1b[1m" + text + "\x1b[0m" : text;
}

Page& Page::line(std::size_t indent, const std::string& text) {
  lines_.push_back({std::string(indent, ' '), plain(text, style_.ascii), true});
  return *this;
}

Page& Page::verbatim(std::size_t indent, const std::string& text) {
  lines_.push_back({std::string(indent, ' '), plain(text, style_.ascii)});
  return *this;
}

Page& Page::gap() {
  lines_.emplace_back();
  return *this;
}

Page& Page::marked(std::size_t indent, const Mark& mark, const std::string& bold, const std::string& text) {
  std::string head = std::string(style_.ascii ? mark.ascii : mark.symbol) + " " + mark_word(mark);
  if (style_.color) head = mark.color + head + "\x1b[0m";
  lines_.push_back(
      {std::string(indent, ' ') + head + "  ", plain(text, style_.ascii), true, plain(bold, style_.ascii)});
  return *this;
}

Page& Page::strong(const std::string& command) {
  lines_.push_back({"", "", false, plain(command, style_.ascii)});
  return *this;
}

// Only lines that were added by line() and marked() are shortened, and only their plain part.
Page& Page::legend(Legend legend) {
  std::vector<std::string> texts;
  for (const Line& line : lines_)
    if (line.shortened) texts.push_back(line.text);
  legend.settle(texts);
  for (Line& line : lines_)
    if (line.shortened) line.text = legend.shortened(std::move(line.text));
  if (!legend.entries().empty()) gap();
  for (const auto& [name, directory] : legend.entries()) verbatim(0, name + " = " + directory);
  return *this;
}

// The page is empty afterwards.
std::string Page::take() {
  std::string out;
  for (const Line& line : lines_) out += line.before + in_bold(line.bold) + line.text + "\n";
  lines_.clear();
  return out;
}

}  // namespace scankit::report
