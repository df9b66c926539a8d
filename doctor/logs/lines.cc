// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/lines.h"

#include <algorithm>
#include <stdexcept>

#include "doctor/base/text.h"

namespace scankit::logs {
namespace {

constexpr char kEscape = '\x1b';

// The position after the escape sequence that starts at `at`. ECMA-48: a CSI sequence ends with a byte of
// 0x40..0x7e; OSC, DCS, PM, APC and SOS strings end with BEL or ST; all others are one final byte,
// perhaps with an intermediate one before it. Of a sequence that does not end on the line only the
// introducer is removed, because the text of an error may follow it.
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

// U+0080..U+009F in UTF-8; some terminals treat them as escapes.
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
    } else if (const std::size_t length = utf8_sequence_length(raw, i); length == 0) {
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

// Hands the buffer to the sink if it contains anything that the sink has not seen.
void LineCutter::emit() {
  if (fresh_ > 0) sink_(line_, clean_line(buffer_));
  fresh_ = 0;
}

void LineCutter::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\0') continue;
    // A carriage return ends a piece but not the line: a progress bar overwrites it. The pieces have
    // the same number.
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
    // A very long line is handed out in pieces. They overlap, so that a rule finds text that a
    // cut would divide.
    if (buffer_.size() < kLongest) continue;
    emit();
    buffer_.erase(0, buffer_.size() - kOverlap);
  }
}

void LineCutter::finish() {
  emit();
  buffer_.clear();
}

namespace {

// How Python, pip and compilers say that something went wrong. Used for lines that no rule explains.
constexpr const char* kError =
    "(?:^|[\\s\\[\\].(])[\\w.]*(?:Error|Exception|Interrupt)\\b\\s*(?::|$)|(?:^|[\\s\\[])(?:ERROR|FATAL|"
    "CRITICAL)\\b|"
    "(?:^|\\W)(?:error|fatal error|fatal|catastrophic "
    "error)\\s*(?:\\[[\\w-]+\\])?\\s*:|\\bFAILED\\b|\\bAborted\\b|"
    "\\bCUDA error\\b|core dumped|^\\s*E {3}";
// Signs of a build in progress: setuptools, pip and torch's cpp_extension.
constexpr const char* kBuild =
    "setup\\.py|get_requires_for_build|build_meta|prepare_metadata_for_build|Getting requirements to build|"
    "bdist_wheel|Building wheel|pip-build-env|cpp_extension|build_ext|Preparing metadata|pip-req-build|"
    "pip-install-";

// What programs that pass a log on put before each line: docker build ("#12 3.456 "), CI and loggers (a time, a
// level), srun and mpirun (the rank), torchrun, ray and vllm (the process), docker compose (the service), rich
// (the frame of its box).
constexpr const char* kPrefix =
    "(?:#\\d{1,4} +(?:\\d+\\.\\d+ )?"
    "|\\[?\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:[.,]\\d+)?(?:Z|[+-]\\d\\d:?\\d\\d)?\\]?[ ,:|-]+"
    "|\\[?\\d\\d:\\d\\d:\\d\\d(?:[.,]\\d+)?\\]?[ |]+"
    "|(?:INFO|WARNING|ERROR|CRITICAL)\\s+(?:\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d |\\| +\\S+ - "
    ")(?:\\[[\\w./-]+:\\d+\\] ?)?"
    "|\\d{1,4}: |\\[\\d+,\\d+\\]<std(?:err|out)>: ?"
    "|\\[(?:rank|default|worker)\\d+\\]:? ?"
    "|\\((?:[\\w@.-]+ )+(?:rank=\\d+ )?pid=\\d+[^)]*\\) ?"
    "|[\\w.-]+[-_]\\d+ +\\| "
    "|│ ?)";
// A frame of a traceback as Python, IPython and rich print it, with the file as its group.
constexpr const char* kFrame =
    "(?:^|[\\s\"'])(/[^\\s\"':]*\\.py|~/[^\\s\"':]*\\.py)(?:[\"']?, line \\d|:\\d+|\\(\\d+\\)| in )";

re2::RE2::Options options() {
  re2::RE2::Options options;
  // Bytes, not characters: patterns and lines are UTF-8 alike, and no line can be malformed.
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_max_mem(64 << 20);
  return options;
}

// The rules are compiled into the program, so a pattern that RE2 refuses is a bug, which
// every test finds.
std::unique_ptr<re2::RE2> compile(const std::string& pattern) {
  auto compiled = std::make_unique<re2::RE2>(pattern, options());
  if (!compiled->ok()) throw std::logic_error("log_rules.yaml: " + pattern + ": " + compiled->error());
  return compiled;
}

}  // namespace

Matcher::Matcher()
    : set_(std::make_unique<re2::RE2::Set>(options(), re2::RE2::UNANCHORED)),
      error_(compile(kError)),
      build_(compile(kBuild)),
      frame_(compile(kFrame)),
      prefix_(compile(kPrefix)) {
  for (const knowledge::LogRule& rule : knowledge::log_rules()) {
    patterns_.push_back(compile(rule.pattern));
    after_.push_back(rule.after.empty() ? nullptr : compile(rule.after));
    set_->Add(rule.pattern, nullptr);
  }
  if (!set_->Compile()) throw std::logic_error("log_rules.yaml: the rules together are too big");
}

std::vector<int> Matcher::match(const std::string& line) const {
  std::vector<int> hits;
  re2::RE2::Set::ErrorInfo error{};
  if (!set_->Match(line, &hits, &error) && error.kind != re2::RE2::Set::kNoError) {
    // The common automaton has exceeded its memory, as a hostile line may cause. Each pattern by
    // itself needs little.
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (re2::RE2::PartialMatch(line, *patterns_[i])) hits.push_back(static_cast<int>(i));
  }
  std::ranges::sort(hits);
  return hits;
}

// Only named groups are returned, and only those that matched some text.
Captures Matcher::captures(int rule, const std::string& line) const {
  const re2::RE2& pattern = *patterns_[static_cast<std::size_t>(rule)];
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(pattern.NumberOfCapturingGroups()) + 1);
  Captures out;
  if (!pattern.Match(line, 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
                     static_cast<int>(groups.size())))
    return out;
  for (const auto& [index, name] : pattern.CapturingGroupNames()) {
    const re2::StringPiece& group = groups[static_cast<std::size_t>(index)];
    if (!group.empty()) out[name] = std::string(group.data(), group.size());
  }
  return out;
}

bool Matcher::after_matches(int rule, const std::string& line) const {
  const auto& after = after_[static_cast<std::size_t>(rule)];
  return after == nullptr || re2::RE2::PartialMatch(line, *after);
}

std::string Matcher::frame(const std::string& line) const {
  std::string file;
  // Most lines of a log are no frames, and the search for a substring is much cheaper.
  if (line.find(".py") != std::string::npos) re2::RE2::PartialMatch(line, *frame_, &file);
  return file;
}

// Compilers quote names as their language does, and U+2018 to U+201D are three bytes each, where a pattern
// expects one. Prefixes are removed for the patterns that are bound to the start of a line, and because their
// width may change within a traceback.
std::string Matcher::as_rules_read(const std::string& text) const {
  re2::StringPiece rest(text);
  while (!rest.empty() && re2::RE2::Consume(&rest, *prefix_)) {
  }
  std::string plain;
  plain.reserve(rest.size());
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const auto third = i + 2 < rest.size() ? static_cast<unsigned char>(rest[i + 2]) : 0u;
    if (rest[i] != '\xe2' || rest[i + 1] != '\x80' || third < 0x98 || third > 0x9d) {
      plain += rest[i];
      continue;
    }
    plain += third < 0x9c ? '\'' : '"';
    i += 2;
  }
  return plain;
}

const Matcher& matcher() {
  static const Matcher instance;
  return instance;
}

}  // namespace scankit::logs
