// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/explainer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/logs/built_for.h"
#include "doctor/logs/decide.h"
#include "doctor/logs/lines.h"
#include "doctor/model/redact_text.h"

namespace scankit {
namespace {

constexpr std::size_t kBefore = 40;  // lines that `after` and the surroundings look back on
// Of each end of the log: the first errors and the last ones are kept, whatever comes between.
constexpr std::size_t kErrors = 64;
constexpr std::size_t kUnexplained = 8;
constexpr std::uint64_t kTail = 30;   // lines that a message may go on behind the last line of its traceback
constexpr std::size_t kPrompts = 64;  // different ones
constexpr std::size_t kShown = 1000;  // characters of a line that are kept

// Puts the captures into a text of the rules: "{NAME}" becomes its value. A value is not searched
// for names again.
Message filled(const std::string& text, const Captures& captures) {
  std::vector<MessageArgument> values;
  for (auto at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    const std::string name = text.substr(at + 1, text.find('}', at) - at - 1);
    if (std::ranges::find(values, name, &MessageArgument::name) != values.end()) continue;
    const auto found = captures.find(name);
    values.push_back({name, found == captures.end() ? "{" + name + "}" : found->second});
  }
  return text.empty() ? Message() : Message(text, "", 0, std::move(values));
}

// The line as the rules read it: compilers quote names as their language does, and U+2018 to U+201D are three
// bytes each, where a pattern expects one.
std::string with_plain_quotes(const std::string& text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto third = i + 2 < text.size() ? static_cast<unsigned char>(text[i + 2]) : 0u;
    if (text[i] != '\xe2' || text[i + 1] != '\x80' || third < 0x98 || third > 0x9d) {
      plain += text[i];
      continue;
    }
    plain += third < 0x9c ? '\'' : '"';
    i += 2;
  }
  return plain;
}

}  // namespace

// Follows Python's tracebacks, also where pip, loggers or progress bars indent them. The column of
// "Traceback" is the column at which the exception is printed; lines in between are indented further.
class Tracebacks {
 public:
  void line(std::uint64_t number, const std::string& text) {
    if (text.find("During handling of the above exception") != std::string::npos ||
        text.find("The above exception was the direct cause") != std::string::npos) {
      chained_ = true;
      return;
    }
    const auto head = text.find("Traceback (most recent call last)");
    // A traceback after one of the two connecting lines continues the chain.
    if (head != std::string::npos) {
      if (!chained_) ++chain_;
      chained_ = false;
      column_ = head;
      inside_ = true;
      return;
    }
    if (!inside_) return;
    // Deeper lines are frames and source lines. The first line at the column ends the traceback:
    // the exception.
    if (text.size() <= column_ || text[column_] == ' ') return;
    inside_ = false;
    ended_ = number;
  }
  // The number of the traceback that the line belongs to, 0 for none. A message may continue for some
  // lines after the exception.
  std::uint64_t chain(std::uint64_t number) const {
    return chain_ > 0 && (inside_ || number - ended_ <= kTail) ? chain_ : 0;
  }

 private:
  std::uint64_t chain_ = 0, ended_ = 0;
  std::size_t column_ = 0;
  bool inside_ = false, chained_ = false;
};

// Takes the log line by line. Each line is matched once, against all rules together.
struct Explainer::State {
  LineCutter cutter{[this](std::uint64_t line, const std::string& text) { take(line, text); }};
  std::deque<std::string> before;
  Tracebacks tracebacks;
  LogState seen;
  std::uint64_t attempt = 0;
  std::uint64_t bytes = 0;
  std::deque<LogLine> unexplained;
  std::set<std::string> prompts;
  NamesOfLog torch_names;

  void take(std::uint64_t line, const std::string& text) {
    if (text.empty()) return;
    const std::string plain = with_plain_quotes(text);
    tracebacks.line(line, text);
    keep_prompts(text);
    bool explained = false;
    // The rules come in the order of the table. After a match, further clues still count, but no second
    // error: the first rule that explains a line wins.
    for (const int index : matcher().match(plain)) {
      const LogRule& rule = log_rules()[static_cast<std::size_t>(index)];
      if (!follows(rule, index, plain)) continue;
      // A new command begins: errors before it belong to another attempt.
      if (rule.role == "boundary") {
        ++attempt;
        continue;
      }
      // The line says that something above it failed, and nothing else.
      if (rule.role == "wrapper") {
        seen.failed = explained = true;
        continue;
      }
      if (rule.role == "fatal" && explained) continue;
      note(rule, index, line, text, plain);
      explained = true;
    }
    // Remember error-like lines that no rule knows, the first four and the last four, so that the report
    // can show them.
    if (!explained && matcher().looks_like_error(text)) {
      seen.failed = true;
      unexplained.push_back({line, text.substr(0, kShown)});
      if (unexplained.size() > kUnexplained) unexplained.erase(unexplained.begin() + kUnexplained / 2);
    }
    before.push_back(plain);
    if (before.size() > kBefore) before.pop_front();
  }

  // Collects "user@host" of shell prompts, in the form in which redaction recognises a prompt. Most lines
  // of a log are dropped here, and the names with them; without this, redaction would not know what to
  // hide in those that remain.
  void keep_prompts(const std::string& text) {
    if (prompts.size() >= kPrompts || text.find('@') == std::string::npos) return;
    for (const redaction::Login& login : redaction::find_logins(text.substr(0, kShown)))
      if (login.prompt)
        prompts.insert(text.substr(login.user.start, login.host.end - login.user.start) + ":~");
  }

  // Whether the rule's condition on the surroundings (`LogRule::after`) is met. A message may say in one line
  // what another program says in two.
  bool follows(const LogRule& rule, int index, const std::string& text) const {
    if (rule.after.empty() || matcher().after_matches(index, text)) return true;
    for (const std::string& earlier : before)
      if (matcher().after_matches(index, earlier)) return true;
    return false;
  }

  // What the lines before the error show. The last "File" line before it is the innermost frame, but for
  // those of ctypes, by which torch's __init__ and many packages open their libraries.
  Surroundings surroundings() const {
    Surroundings around;
    for (const std::string& earlier : before) {
      if (matcher().looks_like_build(earlier)) around.building = true;
      if (earlier.find("File \"") != std::string::npos && earlier.find("/ctypes/") == std::string::npos) {
        around.importing_torch = earlier.find("/torch/__init__.py\"") != std::string::npos;
        around.program = earlier.find(".py\", line ") != std::string::npos;
      }
    }
    around.program = around.program && !around.building;
    return around;
  }

  // Makes a hit of a rule that matched. A rule with `classify` leaves the cause to the classifier; a
  // sureness other than the default "likely" stays the rule's.
  void note(const LogRule& rule, int index, std::uint64_t line, const std::string& text,
            const std::string& plain) {
    Captures captures = matcher().captures(index, plain);
    LogHit hit{.rule = rule.id,
               .cause = rule.cause,
               .role = rule.role == "clue" ? "clue" : "other",
               .sure = rule.sure,
               .line = line,
               .text = text.substr(0, kShown),
               .meaning = filled(rule.meaning, captures),
               .settles = filled(rule.settles, captures),
               .file = {},
               .module = {},
               .alternatives = rule.alternatives,
               .facts = {}};
    const Surroundings around = surroundings();
    if (!rule.classify.empty()) {
      Judged judged = judge(rule.classify, captures, around);
      if (rule.sure != "likely") judged.sure = rule.sure;
      hit.cause = judged.cause;
      hit.sure = judged.sure;
      hit.meaning = judged.meaning;
      hit.settles = judged.settles;
      hit.alternatives = judged.alternatives;
      for (const auto& [name, value] : judged.more) captures[name] = value;
    } else if (rule.id == "gpus_none" && around.building) {
      hit.cause = "no_gpu_at_build";
      hit.meaning = message("the setup script queries the GPU, and no GPU is visible");
    }
    const std::string needed_by = capture(captures, "needed_by");
    hit.file = needed_by.empty() ? capture(captures, "file") : needed_by;
    hit.module = capture(captures, "module");
    if (hit.module.empty()) hit.module = module_of(hit.file);
    // add_exporters() has marked the names that belong to torch.
    if (captures.contains("exported_by") || captures.contains("exported_with_other_string_abi_by"))
      torch_names.take(hit.file, capture(captures, "symbol"));
    captures.erase("quote");
    for (const auto& [name, value] : captures) hit.facts.push_back({name, value.substr(0, kShown)});
    if (rule.role == "clue") {
      if (seen.clue_rules.insert(rule.id).second) seen.clues.push_back(std::move(hit));
      return;
    }
    seen.failed = true;
    seen.errors.push_back({std::move(hit), tracebacks.chain(line), attempt});
    // The first and the last errors decide; between them, a log may contain millions.
    if (seen.errors.size() > 2 * kErrors) seen.errors.erase(seen.errors.begin() + kErrors);
  }
};

Explainer::Explainer() : state_(std::make_unique<State>()) {}
Explainer::~Explainer() = default;

void Explainer::feed(std::string_view bytes) {
  state_->bytes += bytes.size();
  state_->cutter.feed(bytes);
}

Log Explainer::finish() {
  state_->cutter.finish();
  Log log;
  log.bytes = state_->bytes;
  log.lines = state_->cutter.lines();
  log.hits = decide(std::move(state_->seen));
  log.built_for = state_->torch_names.built_for();
  log.prompts.assign(state_->prompts.begin(), state_->prompts.end());
  log.unexplained.assign(state_->unexplained.begin(), state_->unexplained.end());
  return log;
}

Log explain_text(std::string_view text) {
  Explainer explainer;
  explainer.feed(text);
  return explainer.finish();
}

// Reads the log in pieces, so its size is not limited. A terminal or a FIFO is read as well,
// until it ends.
Result<Log> explain_log(const std::string& path) {
  Descriptor file(path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = path == "-" ? STDIN_FILENO : file.get();
  const auto failed = [&](int error) {
    const auto code = error == ENOENT || error == ENOTDIR ? Errc::NotFound
                      : error == EACCES                   ? Errc::PermissionDenied
                                                          : Errc::Io;
    return Error{code, message("{}: cannot read the log: {}", path, std::strerror(error)),
                 message("give a text file, or - for standard input")};
  };
  if (fd < 0) return failed(errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0) return failed(errno);
  if (S_ISDIR(status.st_mode))
    // open(2) succeeds on a directory, and read(2) fails with a message that does not help.
    return Error{Errc::InvalidArgument, message("{}: is a directory, not a log", path),
                 message("give one file, or - for standard input")};
  Explainer explainer;
  std::string buffer(1u << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    explainer.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
  Log log = explainer.finish();
  log.source = path;
  if (log.bytes == 0)
    return Error{Errc::InvalidArgument, message("{}: the log is empty", path),
                 message("run the failing command again with 2>&1 | tee FILE")};
  return log;
}

}  // namespace scankit
