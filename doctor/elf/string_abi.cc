// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "doctor/elf/mangling.h"

namespace scankit {
namespace {

constexpr std::string_view kOldString = "std::string";
constexpr std::string_view kLongString =
    "std::basic_string<char, std::char_traits<char>, std::allocator<char> >";

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void erase_all(std::string& text, std::string_view what) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

}  // namespace

// The text with every string written as the old ABI's long form. A demangler prints "std::string" for the
// mangled "Ss" but the long form for the new one, so one spelling has to be chosen.
std::string without_string_abi(std::string text) {
  erase_all(text, "__cxx11::");
  erase_all(text, "[abi:cxx11]");
  for (auto at = text.find(kOldString); at != std::string::npos; at = text.find(kOldString, at + 1)) {
    const auto end = at + kOldString.size();
    if (end < text.size() && is_word_character(text[end])) continue;
    if (text.size() > (1u << 20)) break;
    text.replace(at, kOldString.size(), kLongString);
  }
  return text;
}

StringAbi string_abi_in(const std::string& demangled) {
  if (demangled.find("__cxx11") != std::string::npos || demangled.find("[abi:cxx11]") != std::string::npos)
    return StringAbi::New;
  if (demangled.find("std::basic_string<") != std::string::npos) return StringAbi::Old;
  for (auto at = demangled.find(kOldString); at != std::string::npos;
       at = demangled.find(kOldString, at + 1)) {
    const auto end = at + kOldString.size();
    if (end >= demangled.size() || !is_word_character(demangled[end])) return StringAbi::Old;
  }
  return StringAbi::Neither;
}

bool differ_only_in_string_abi(const std::string& a, const std::string& b) {
  if (a == b) return false;
  return without_string_abi(a) == without_string_abi(b);
}

// Brackets are counted so that parameters inside template arguments do not end the name early.
std::string qualified_name(const std::string& demangled) {
  const std::string_view text = demangled;
  constexpr std::string_view kAnonymous = "(anonymous namespace)", kOperator = "operator",
                             kCall = "operator()";
  int angle = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (rest.starts_with(kOperator)) {
      i += (rest.starts_with(kCall) ? kCall.size() : kOperator.size()) - 1;
      while (i + 1 < text.size() && (text[i + 1] == '<' || text[i + 1] == '>' || text[i + 1] == '=')) ++i;
    } else if (text[i] == '<') {
      ++angle;
    } else if (text[i] == '>') {
      --angle;
    } else if (angle == 0 && text[i] == ' ') {
      start = i + 1;  // behind the result type of a template function
    } else if (angle == 0 && text[i] == '(') {
      return demangled.substr(start, i - start);
    }
  }
  return demangled.substr(start);
}

}  // namespace scankit
