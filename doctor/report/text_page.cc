// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/text_page.h"

#include "doctor/base/say.h"
#include "doctor/report/escape.h"

namespace scankit {

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

}  // namespace scankit
