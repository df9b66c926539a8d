// SPDX-License-Identifier: Apache-2.0
#include "doctor/text/pseudo.h"

#include <algorithm>
#include <string_view>

namespace scankit {
namespace {

constexpr std::string_view kSentence = "\xE2\x9F\xA6",
                           kSentenceEnd = "\xE2\x9F\xA7";                        // mathematical brackets
constexpr std::string_view kValue = "\xE2\x80\xB9", kValueEnd = "\xE2\x80\xBA";  // angle quotation marks

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The full-width form, U+FF21 for A: three bytes.
std::string wide(char c) {
  const unsigned code = 0xFF00u + static_cast<unsigned char>(c) - 0x20u;
  return {static_cast<char>(0xE0u | (code >> 12)), static_cast<char>(0x80u | ((code >> 6) & 0x3Fu)),
          static_cast<char>(0x80u | (code & 0x3Fu))};
}

std::string unquoted(std::string_view line) {
  const auto first = line.find('"'), last = line.rfind('"');
  std::string out;
  for (std::size_t i = first + 1; i < last; ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    const char escaped = line[++i];
    out += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : c == '\t' ? std::string("\\t") : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

std::vector<PotEntry> read_pot(const std::string& text) {
  std::vector<PotEntry> entries;
  std::string skipped;  // msgstr, and the header
  std::string* target = &skipped;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.starts_with("msgid_plural ")) {
      target = &entries.back().many;
    } else if (line.starts_with("msgid ")) {
      entries.emplace_back();
      target = &entries.back().one;
    } else if (line.starts_with("msgstr")) {
      target = &skipped;
    } else if (!line.starts_with('"')) {
      continue;
    }
    *target += unquoted(line);
  }
  std::erase_if(entries, [](const PotEntry& entry) { return entry.one.empty(); });
  return entries;
}

std::string pseudo_sentence(const std::string& english) {
  std::string out(kSentence);
  for (std::size_t i = 0; i < english.size(); ++i) {
    const char c = english[i];
    const bool doubled = i + 1 < english.size() && english[i + 1] == c;
    if (c == '{' && !doubled) {
      const auto end = english.find('}', i);
      out += std::string(kValue) + english.substr(i, end - i + 1) + std::string(kValueEnd);
      i = end;
    } else if ((c == '{' || c == '}') && doubled) {
      out += english.substr(i++, 2);
    } else {
      out += is_letter(c) ? wide(c) : std::string(1, c);
    }
  }
  // gettext wants a line to stay a line.
  const bool ends_line = out.ends_with('\n');
  if (ends_line) out.pop_back();
  return out + std::string(kSentenceEnd) + (ends_line ? "\n" : "");
}

std::string pseudo_po(const std::vector<PotEntry>& entries) {
  std::string out =
      "msgid \"\"\nmsgstr \"\"\n\"Language: qps\\n\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n"
      "\"Plural-Forms: nplurals=2; plural=n != 1;\\n\"\n";
  for (const PotEntry& entry : entries) {
    out += "\nmsgid " + quoted(entry.one) + "\n";
    if (entry.many.empty()) {
      out += "msgstr " + quoted(pseudo_sentence(entry.one)) + "\n";
      continue;
    }
    out += "msgid_plural " + quoted(entry.many) + "\nmsgstr[0] " + quoted(pseudo_sentence(entry.one)) +
           "\nmsgstr[1] " + quoted(pseudo_sentence(entry.many)) + "\n";
  }
  return out;
}

std::vector<std::string> parts_outside_sentences(const std::string& text, bool& open) {
  std::vector<std::string> parts;
  std::vector<std::string> values{""};  // of the brackets that are open; the first is the text itself
  std::string expected;                 // the closing brackets, S or V, the innermost last
  open = false;
  const auto flush = [&](std::string& part) {
    if (!part.empty()) parts.push_back(part);
    part.clear();
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    const bool in_sentence = !expected.empty() && expected.back() == 'S';
    if (rest.starts_with(kSentence)) {
      flush(values.back());
      expected += 'S';
    } else if (rest.starts_with(kValue) && in_sentence) {
      expected += 'V';
      values.emplace_back();
    } else if (rest.starts_with(kSentenceEnd) && in_sentence) {
      expected.pop_back();
    } else if (rest.starts_with(kValueEnd) && !expected.empty() && expected.back() == 'V') {
      expected.pop_back();
      flush(values.back());
      values.pop_back();
    } else {
      if (!in_sentence && text[i] == '\n') flush(values.back());
      if (!in_sentence && text[i] != '\n') values.back() += text[i];
      if (in_sentence && is_letter(text[i])) parts.push_back(std::string("in a sentence: ") + text[i]);
      ++i;
      continue;
    }
    i += 3;
  }
  flush(values.front());
  open = !expected.empty();
  return parts;
}

}  // namespace scankit
