// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/lines.h"

#include <algorithm>
#include <array>
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

void clean_line(std::string_view raw, std::string& text) {
  text.clear();
  for (std::size_t i = 0; i < raw.size();) {
    // Nearly all of nearly every log.
    std::size_t end = i;
    while (end < raw.size() && raw[end] >= 0x20 && raw[end] < 0x7f) ++end;
    text.append(raw, i, end - i);
    if ((i = end) == raw.size()) break;
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
}

std::string clean_line(std::string_view raw) {
  std::string text;
  clean_line(raw, text);
  return text;
}

bool is_collapsed_traceback(std::string_view text) {
  const auto head = text.find("Traceback (most recent call last)");
  return head != std::string_view::npos && text.find("File \"", head) != std::string_view::npos;
}

// Python indents a frame with two blanks and its source with four; the exception has no mark but its name.
std::vector<std::string> traceback_lines(const std::string& text) {
  static const re2::RE2 cut(
      R"((?:\\r)?\\n|\s(\s*File "[^"]+", line \d+)|\s((?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ))");
  std::vector<std::string> lines;
  std::array<re2::StringPiece, 3> found;  // what is cut; the frame or the exception that begins there
  std::size_t from = 0;
  for (std::size_t at = 0; cut.Match(text, at, text.size(), re2::RE2::UNANCHORED, found.data(), 3);) {
    const auto start = static_cast<std::size_t>(found[0].data() - text.data());
    lines.push_back(clean_line(text.substr(from, start - from)));
    at = start + found[0].size();
    from = at - found[1].size() - found[2].size();
  }
  lines.push_back(clean_line(text.substr(from)));
  return lines;
}

// Hands the buffer to the sink if it contains anything that the sink has not seen.
void LineCutter::emit() {
  if (fresh_ > 0) {
    clean_line(buffer_, clean_);
    sink_(line_, clean_);
  }
  fresh_ = 0;
}

// A very long line is handed out in pieces. They overlap, so that a rule finds text that a cut would divide.
void LineCutter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    pending_ = true;
    const std::size_t taken = std::min(bytes.size(), kLongest - buffer_.size());
    buffer_.append(bytes, 0, taken);
    fresh_ += taken;
    bytes.remove_prefix(taken);
    if (buffer_.size() < kLongest) continue;
    emit();
    buffer_.erase(0, buffer_.size() - kOverlap);
  }
}

void LineCutter::feed(std::string_view bytes) {
  constexpr std::string_view kCuts("\0\r\n", 3);
  std::array<std::size_t, kCuts.size()> next{};  // of each of them, at or behind the position
  const auto find = [&](std::size_t cut, std::size_t from) {
    const auto at = bytes.find(kCuts[cut], from);
    next[cut] = at == std::string_view::npos ? bytes.size() : at;
  };
  for (std::size_t cut = 0; cut < kCuts.size(); ++cut) find(cut, 0);
  for (std::size_t from = 0; from < bytes.size();) {
    const auto nearest = std::ranges::min_element(next);
    const std::size_t at = *nearest;
    add(bytes.substr(from, at - from));
    if (at == bytes.size()) break;
    // A carriage return ends a piece but not the line: a progress bar overwrites it. The pieces have
    // the same number.
    if (const char c = bytes[at]; c != '\0') {
      emit();
      buffer_.clear();
      if (c == '\n') ++line_;
      pending_ = c != '\n';
    }
    from = at + 1;
    find(static_cast<std::size_t>(nearest - next.begin()), from);
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
    "|\\[?\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:[.,]\\d+)?(?:Z|[+-]\\d\\d:?\\d\\d)?\\]?"
    "(?: +- +|[ ,:|]+)"
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

std::vector<std::string> all_patterns() {
  std::vector<std::string> patterns;
  for (const knowledge::LogRule& rule : knowledge::log_rules()) patterns.push_back(rule.pattern);
  patterns.emplace_back(kError);
  return patterns;
}

int error_index() { return static_cast<int>(knowledge::log_rules().size()); }

}  // namespace

Matcher::Matcher()
    : patterns_(all_patterns(), options()),
      build_(compile(kBuild)),
      frame_(compile(kFrame)),
      prefix_(compile(kPrefix)),
      python_(compile("/python(3\\.\\d+)/")),
      script_(compile(R"(\bpython[\d.]*(?:\.exe)? (?:-[a-zA-Z] )*(?:[^\s-]\S*[/\\])?(\w+)\.py\b)")) {
  for (const knowledge::LogRule& rule : knowledge::log_rules())
    after_.push_back(rule.after.empty() ? nullptr : compile(rule.after));
}

LineMatch Matcher::match(const std::string& line, RuleFilter::Memo& memo) const {
  LineMatch found{.rules = patterns_.match(line, memo)};
  found.error = !found.rules.empty() && found.rules.back() == error_index();
  if (found.error) found.rules.pop_back();
  return found;
}

bool Matcher::looks_like_error(const std::string& line) const {
  return re2::RE2::PartialMatch(line, patterns_.pattern(error_index()));
}

// Only named groups are returned, and only those that matched some text.
Captures Matcher::captures(int rule, const std::string& line) const {
  const re2::RE2& pattern = patterns_.pattern(rule);
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

std::string Matcher::python_of(const std::string& line) const {
  std::string release;
  if (line.find("/python3.") != std::string::npos) re2::RE2::PartialMatch(line, *python_, &release);
  return release;
}

std::string Matcher::script_of(const std::string& line) const {
  std::string script;
  if (line.find("python") != std::string::npos && line.find(".py") != std::string::npos)
    re2::RE2::PartialMatch(line, *script_, &script);
  return script;
}

namespace {

// Whether kPrefix could match at the start. It asks for a "|" only where a name is all that tells a prefix from text.
bool may_have_prefix(std::string_view text) {
  const auto first = text.empty() ? '\0' : text[0];
  if (first == '#' || first == '[' || first == '(' || first == '\xe2' || (first >= '0' && first <= '9'))
    return true;
  for (const std::string_view level : {"INFO", "WARNING", "ERROR", "CRITICAL"})
    if (text.starts_with(level)) return true;
  return text.find(" |") != std::string_view::npos;
}

}  // namespace

// Compilers quote names as their language does, and U+2018 to U+201D are three bytes each, where a pattern
// expects one. Prefixes are removed for the patterns that are bound to the start of a line, and because their
// width may change within a traceback.
void Matcher::as_rules_read(const std::string& text, std::string& plain) const {
  re2::StringPiece rest(text);
  while (may_have_prefix({rest.data(), rest.size()}) && re2::RE2::Consume(&rest, *prefix_)) {
  }
  plain.clear();
  for (std::size_t i = 0; i < rest.size();) {
    const auto quote = rest.find('\xe2', i);
    plain.append(rest.data() + i, std::min(quote, rest.size()) - i);
    if (quote == re2::StringPiece::npos) return;
    const auto third = quote + 2 < rest.size() ? static_cast<unsigned char>(rest[quote + 2]) : 0u;
    const bool quotes = third >= 0x98 && third <= 0x9d && rest[quote + 1] == '\x80';
    plain += !quotes ? '\xe2' : third < 0x9c ? '\'' : '"';
    i = quote + (quotes ? 3 : 1);
  }
}

const Matcher& matcher() {
  static const Matcher instance;
  return instance;
}

}  // namespace scankit::logs
