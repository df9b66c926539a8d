// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/explainer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/decide.h"
#include "doctor/logs/lines.h"
#include "doctor/model/redact.h"

namespace scankit::logs {
namespace {

constexpr std::size_t kBefore = 40;  // lines that `after` and the surroundings look back on
// Of each end of the log: the first errors and the last ones are kept, whatever comes between.
constexpr std::size_t kErrors = 64;
constexpr std::size_t kUnexplained = 8;
constexpr std::size_t kPrompts = 64;  // different ones
constexpr std::size_t kShown = 1000;  // characters of a line that are kept
// A terminal, or uv's box, wraps a message; what is shorter was not wrapped. One of three lines is common.
constexpr std::size_t kWrapped = 50;
constexpr int kContinuations = 2;
// Lines that are read again, of one log: errors of which none is known may fill it.
constexpr int kMostWrapped = 20'000;

// The group of that name, or of the name with 2, 3 or 4: RE2 wants another name in each alternative of a pattern.
std::string captured(const Captures& captures, const std::string& name) {
  for (const char* number : {"", "2", "3", "4"})
    if (const std::string value = capture(captures, name + number); !value.empty()) return value;
  return "{" + name + "}";
}

// Puts the captures into a text of the rules: "{NAME}" becomes its value. A value is not searched
// for names again.
Message filled(const std::string& text, const Captures& captures) {
  std::vector<MessageArgument> values;
  for (auto at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    const std::string name = text.substr(at + 1, text.find('}', at) - at - 1);
    if (std::ranges::find(values, name, &MessageArgument::name) != values.end()) continue;
    values.push_back({name, captured(captures, name)});
  }
  return text.empty() ? Message() : Message(text, "", 0, std::move(values));
}

bool is_error(const knowledge::LogRule& rule) { return rule.role == "fatal" || rule.role == "symptom"; }

}  // namespace

// Takes the log line by line. Each line is matched once, against all rules together.
struct Explainer::State {
  LineCutter cutter{[this](std::uint64_t line, const std::string& text) { take(line, text); }};
  std::string plain;  // the line, as rules read it
  RuleFilter::Memo memo;
  std::deque<std::string> before;
  Tracebacks tracebacks;
  LogState seen;
  std::uint64_t attempt = 0;
  std::uint64_t bytes = 0;
  std::deque<LogLine> unexplained;
  // An error that no rule knows, and that may continue in the next line.
  struct {
    LogLine shown;
    std::string plain;
    int continuations = 0;  // lines that it may still take
    int tried = 0;          // of the whole log
  } open;
  std::set<std::string> prompts;
  NamesOfLog torch_names;

  void take(std::uint64_t line, const std::string& text) {
    if (is_collapsed_traceback(text))
      for (const std::string& part : traceback_lines(text)) take_line(line, part);
    else
      take_line(line, text);
  }

  void take_line(std::uint64_t line, const std::string& text) {
    if (text.empty()) return;
    matcher().as_rules_read(text, plain);
    tracebacks.line(line, plain);
    keep_prompts(text);
    bool explained = false;
    seen.last.reset();
    // The rules come in the order of the table. After a match, further clues still count, but no second
    // error: the first rule that explains a line wins.
    const LineMatch match = matcher().match(plain, memo);
    for (const int index : match.rules) {
      const knowledge::LogRule& rule = knowledge::log_rules()[static_cast<std::size_t>(index)];
      if (!follows(rule, index, plain)) continue;
      // A new command begins: errors before it belong to another attempt.
      if (rule.role == "boundary") {
        ++attempt;
        if (rule.id == "installed") seen.earlier_clues = seen.clues.size();
        continue;
      }
      // The line says that something above it failed, and nothing else.
      if (rule.role == "wrapper") {
        seen.failed = explained = true;
        continue;
      }
      if ((is_error(rule) || rule.role == "warning") && explained) continue;
      note(rule, index, line, text);
      explained = true;
    }
    const bool error = text == plain ? match.error : matcher().looks_like_error(text);
    const bool continues = !explained && !error && open.continuations > 0;
    if (continues && explain_wrapped()) return;
    if (!continues) open.continuations = 0;
    if (!explained && error) keep_unexplained(line, text);
    remember();
  }

  // Remembers error-like lines that no rule knows, the first four and the last four, so that the report can
  // show them.
  void keep_unexplained(std::uint64_t line, const std::string& text) {
    seen.failed = true;
    unexplained.push_back({line, text.substr(0, kShown)});
    if (unexplained.size() > kUnexplained) unexplained.erase(unexplained.begin() + kUnexplained / 2);
    if (plain.size() < kWrapped || plain.size() > kShown || open.tried >= kMostWrapped) return;
    open.shown = unexplained.back();
    open.plain = plain;
    open.continuations = kContinuations;
  }

  // Reads the open error together with this line, as one message that was cut within a word or between two.
  bool explain_wrapped() {
    const std::string rest = plain.substr(std::min(plain.size(), plain.find_first_not_of(' ')));
    const std::string own = plain;
    ++open.tried;
    for (const char* between : {"", " "}) {
      plain = open.plain + between + rest;
      for (const int index : matcher().match(plain, memo).rules) {
        const knowledge::LogRule& rule = knowledge::log_rules()[static_cast<std::size_t>(index)];
        // The rest of the message may still say what the fault is.
        const bool names_none = rule.cause.empty() && rule.classify.empty();
        if (!is_error(rule) || names_none || !follows(rule, index, plain)) continue;
        note(rule, index, open.shown.line, open.shown.text + between + rest);
        if (!unexplained.empty() && unexplained.back().line == open.shown.line) unexplained.pop_back();
        open.continuations = 0;
        plain = own;
        remember();
        return true;
      }
    }
    open.plain = std::move(plain);  // the form with a blank
    plain = own;
    --open.continuations;
    return false;
  }

  // The memory of the line that is forgotten is used again.
  void remember() {
    std::string line;
    if (before.size() == kBefore) {
      line = std::move(before.front());
      before.pop_front();
    }
    line = plain;
    before.push_back(std::move(line));
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
  bool follows(const knowledge::LogRule& rule, int index, const std::string& text) const {
    if (rule.after.empty() || matcher().after_matches(index, text)) return true;
    for (const std::string& earlier : before)
      if (matcher().after_matches(index, earlier)) return true;
    return false;
  }

  // What the lines before the error show. The last frame before it is the innermost one, but for those of
  // ctypes, by which torch's __init__ and many packages open their libraries.
  Surroundings surroundings() const {
    Surroundings around;
    for (const std::string& earlier : before) {
      if (matcher().looks_like_build(earlier)) around.building = true;
      const std::string frame = matcher().frame(earlier);
      if (!frame.empty() && frame.find("/ctypes/") == std::string::npos) {
        around.importing_torch = frame.ends_with("/torch/__init__.py");
      }
      if (earlier.find("Failed to import ") != std::string::npos &&
          earlier.find(" because of the following error") != std::string::npos)
        around.lazy_import = true;
      if (const std::string python = matcher().python_of(earlier); !python.empty()) around.python = python;
      if (const std::string script = matcher().script_of(earlier); !script.empty()) around.script = script;
      // A program is started by a relative path as well.
      if (earlier.find("File \"") != std::string::npos && earlier.find("/ctypes/") == std::string::npos) {
        around.frames = true;
        around.program = earlier.find(".py\", line ") != std::string::npos;
      }
      // ComfyUI's custom nodes: the error, and then the frames.
      if (earlier.find("Error occurred when executing ") != std::string::npos) around.program = true;
      // IPython's frames: `[/content/x/main.py](https://...) in <module>`, and without the link.
      if (earlier.find(" in <module>") != std::string::npos && earlier.find(".py") != std::string::npos) {
        around.frames = true;
        around.program = earlier.find("-packages/") == std::string::npos;
      }
      // Where a log was shortened, the statement may be all that is left of the frame.
      if (earlier.find("from torch._C import") != std::string::npos ||
          earlier.find("_load_global_deps") != std::string::npos)
        around.importing_torch = true;
      if (!frame.empty() && frame.find("/torch/nn/modules/") == std::string::npos &&
          frame.find("/importlib/") == std::string::npos)
        around.caller = frame;
    }
    around.program = around.program && !around.building;
    return around;
  }

  // Makes a hit of a rule that matched. A rule with `classify` leaves the cause to the classifier; a
  // sureness other than the default "likely" stays the rule's.
  void note(const knowledge::LogRule& rule, int index, std::uint64_t line, const std::string& text) {
    Captures captures = matcher().captures(index, plain);
    LogHit hit{.rule = rule.id,
               .cause = rule.cause,
               .role = is_error(rule) ? "other" : rule.role,
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
    } else if ((rule.id == "gpus_none" || rule.id == "gpus_hidden") && around.building) {
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
    captures.erase("raised");
    // Python prints what a destructor raised and goes on: it follows from something else.
    if (tracebacks.ignored(line)) hit.sure = "possible";
    for (const auto& [name, value] : captures) hit.facts.push_back({name, value.substr(0, kShown)});
    if (rule.role == "last") {
      seen.last = std::move(hit);
      return;
    }
    if (!is_error(rule)) {
      if (seen.clue_rules.insert(rule.id).second) seen.clues.push_back(std::move(hit));
      return;
    }
    seen.failed = true;
    seen.errors.push_back({std::move(hit), tracebacks.chain(line), attempt, rule.role == "symptom"});
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

namespace {

// The failure as the interpreter would have printed it. The file name tells the rules whether torch
// itself was being imported, and so whose library is missing.
std::string as_traceback(const Observation& seen) {
  const std::string file = seen.module == "torch" ? "/torch/__init__.py" : "<string>";
  return fmt::format("Traceback (most recent call last):\n  File \"{}\", line 1, in <module>\n{}: {}\n", file,
                     seen.exception, english(seen.message));
}

}  // namespace

void read_observations(Snapshot& snapshot) {
  if (!snapshot.observations.present()) return;
  for (Observation& seen : snapshot.observations.value) {
    // "start" is the interpreter that could not start, which is not an import.
    if (seen.outcome != "error" || seen.variant == "start") continue;
    const Log log = explain_text(as_traceback(seen));
    if (log.hits.empty() || log.hits.front().role != "root") continue;
    const LogHit& hit = log.hits.front();
    seen.reading = hit.meaning;
    // A guess that other causes would explain as well does not become a finding. Without LD_LIBRARY_PATH,
    // that variable cannot be what brought another copy first.
    const auto path = snapshot.environment.find("LD_LIBRARY_PATH");
    const bool shadow =
        hit.cause == "ld_library_path_shadow" && (path == snapshot.environment.end() || path->second.empty());
    if (hit.sure != "possible" && !shadow) seen.reads_as = hit.cause;
  }
}

}  // namespace scankit::logs
