// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "envspec/index/index.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// Runs pip and uv and reads their answers, pip's installation report and uv's pylock.toml. Both only
// resolve; nothing is installed.

namespace scankit::envspec {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::size_t kAnswerLimit = 64u << 20;

// One requirement for each line. A file, because a thousand requirements are too long for a command line.
Result<void> write_questions(const std::string& file, const std::vector<IndexQuestion>& questions) {
  std::string lines;
  for (const IndexQuestion& one : questions) lines += one.name + "==" + one.version + "\n";
  return write_file_atomically(file, lines);
}

// Counts the packages that pip has looked up, from its output: it names each requirement when it begins
// with it, "Collecting einops==0.8.0 (from -r ...)".
class LookUps {
 public:
  explicit LookUps(const Looked& looked) : looked_(looked) {}
  void operator()(std::string_view piece) {
    partial_ += piece;
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos; partial_.erase(0, end + 1))
      if (partial_.starts_with("Collecting ") && looked_) looked_(begun_++);  // the one before it is done
  }

 private:
  const Looked& looked_;
  std::string partial_;
  std::size_t begun_ = 0;
};

// "" where a step of the path is missing or the value is not text.
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* name : path) {
    if (!at->is_object() || !at->contains(name)) return "";
    at = &(*at)[name];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// pip's installation report, version 1: the same format as PyPA's specification of
// direct_url.json in "download_info".
std::map<std::string, std::vector<LockedArtifact>> read_report(const std::string& text) {
  std::map<std::string, std::vector<LockedArtifact>> offered;
  const Json json = parse_json_or_discard<Json>(text);
  if (!json.is_object() || !json.contains("install") || !json["install"].is_array()) return offered;
  for (const Json& one : json["install"]) {
    const std::string url = text_at(one, {"download_info", "url"});
    std::string hash = text_at(one, {"download_info", "archive_info", "hashes", "sha256"});
    const std::string name = normalized_name(text_at(one, {"metadata", "name"}));
    LockedArtifact artifact{file_name_of(url), std::move(hash), 0, plain_url(url)};
    if (is_sha256(artifact.sha256) && !artifact.file.empty()) offered[name].push_back(std::move(artifact));
  }
  return offered;
}

// --ignore-installed makes pip report packages that are installed already; "--only-binary :all:" keeps it
// from building anything to read its metadata.
Words pip_words(const installer::Installer& pip, const std::string& folder, bool lazily) {
  Words argv = pip.program;
  for (const char* word :
       {"--disable-pip-version-check", "--no-input", "install", "--dry-run", "--ignore-installed",
        "--no-deps", "--only-binary", ":all:", "--progress-bar", "off", "--retries", "1"})
    argv.emplace_back(word);
  // Reads only a wheel's metadata through HTTP range requests. Otherwise pip would download half a
  // gigabyte of torch where the index does not serve the metadata separately.
  if (lazily) argv.emplace_back("--use-feature=fast-deps");
  for (const std::string& word :
       {std::string("--report"), folder + "/report.json", std::string("-r"), folder + "/questions.txt"})
    argv.push_back(word);
  return argv;
}

}  // namespace

bool says_one_of(const std::string& said, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (said.find(word) != std::string::npos) return true;
  return false;
}

IndexRun run_installer(const Words& argv, const std::string& folder, std::chrono::milliseconds node_deadline,
                       const Looked& looked) {
  ProcessRequest request;
  request.argv = argv;
  // Nothing is installed, so that the user's settings for installations do not matter. PIP_QUIET and
  // PYTHONUNBUFFERED make the progress visible even if a setting silences pip.
  request.environment =
      installer::variables_of({.environment = {"PIP_REQUIRE_VIRTUALENV=0", "PIP_USER=0", "PIP_QUIET=0",
                                               "NO_COLOR=1", "PYTHONUNBUFFERED=1"}});
  request.working_directory = folder;
  request.timeout = node_deadline;
  request.on_out = LookUps(looked);
  IndexRun answer;
  const auto ran = run_process(request);
  if (!ran) {
    answer.said = english(ran.error().message);
    return answer;
  }
  answer.ok = ran->ok();
  answer.timed_out = ran->timed_out;
  // pip with --quiet, and uv, print errors on standard error; a wrapper script may not.
  answer.said = ran->err.empty() ? ran->out : ran->err;
  answer.out = ran->out;
  return answer;
}

IndexRun ask_pip(const installer::Installer& pip, const std::vector<IndexQuestion>& questions,
                 std::chrono::milliseconds node_deadline, const Looked& looked) {
  const auto folder = TemporaryDirectory::create("scankit-index");
  if (!folder) return {.said = english(folder.error().message)};
  if (auto written = write_questions(folder->path() + "/questions.txt", questions); !written)
    return {.said = english(written.error().message)};
  const auto end = std::chrono::steady_clock::now() + node_deadline;
  const std::string start = installer::folder_of(pip);
  IndexRun answer = run_installer(pip_words(pip, folder->path(), true), start, node_deadline, looked);
  // fast-deps is an experiment that pip may drop (its option parser then says "invalid choice"). It also
  // fails on an index that refuses HEAD or range requests ("405 Client Error"). The second run does
  // without it, in the time that is left.
  if (!answer.ok && says_one_of(answer.said, {"invalid choice: 'fast-deps'", "fast-deps is not",
                                              " Client Error: ", " Server Error: "})) {
    const auto left = end - std::chrono::steady_clock::now();
    answer = run_installer(
        pip_words(pip, folder->path(), false), start,
        std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(left)),
        looked);
  }
  // A pip without --report (before 22.2) is treated like an index that cannot be reached: asking again
  // will not help.
  answer.unreachable =
      !answer.ok &&
      says_one_of(answer.said, {"Retrying (Retry(", "Connection to ", "Max retries exceeded",
                                "Network is unreachable", "Read timed out", "no such option: --report"});
  if (!answer.ok) return answer;
  const auto report = read_whole_file(folder->path() + "/report.json", kAnswerLimit);
  if (report) answer.offered = read_report(*report);
  return answer;
}

IndexRun ask_uv(const installer::Installer& uv, const std::vector<IndexQuestion>& questions,
                std::chrono::milliseconds node_deadline) {
  const auto folder = TemporaryDirectory::create("scankit-index");
  if (!folder) return {.said = english(folder.error().message)};
  const std::string out = folder->path() + "/pylock.toml";
  if (auto written = write_questions(folder->path() + "/questions.in", questions); !written)
    return {.said = english(written.error().message)};
  Words argv = uv.program;
  for (const char* word : {"pip", "compile", "--no-deps", "--generate-hashes", "--only-binary",
                           ":all:", "--quiet", "--no-progress", "--format", "pylock.toml", "--output-file"})
    argv.emplace_back(word);
  argv.push_back(out);
  if (!uv.environment.empty()) {
    argv.emplace_back("--python");
    argv.push_back(uv.environment);
  }
  argv.push_back(folder->path() + "/questions.in");
  IndexRun answer = run_installer(argv, uv.project, node_deadline);
  answer.unreachable =
      !answer.ok && says_one_of(answer.said, {"error sending request", "dns error", "Connection refused",
                                              "Request failed after", "network connectivity is disabled",
                                              "unexpected argument '--format'"});
  if (!answer.ok) return answer;
  const auto lock = read_whole_file(out, kAnswerLimit);
  if (lock) answer.offered = read_uv_pylock(*lock);
  return answer;
}

namespace {

// Reads as much TOML as uv writes: basic strings, inline tables, arrays and bare keys. Anything else is
// skipped, and a file without a hash is not reported. A [[packages]] table has the name of a package
// and its files:
//   [[packages]]
//   name = "numpy"
//   wheels = [{ url = "https://...", size = 1, hashes = { sha256 = "..." } }]
// depth_ counts the open inline tables: 0 in the package, 1 in a file, 2 in its hashes. Arrays
// do not count.
class PylockReader {
 public:
  explicit PylockReader(std::string_view text) : text_(text) {}

  std::map<std::string, std::vector<LockedArtifact>> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        value(string());
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '{' || c == '}') {
        ++at_;
        c == '{' ? open() : close();
      } else if (is_bare(c)) {
        word();
      } else {
        if (depth_ == 0 && c == '[' && text_.substr(at_).starts_with("[[packages]]")) name_.clear();
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  static bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }

  // A basic string never spans lines, so that a missing quotation mark costs one line. Escapes such as \n,
  // which no name or URL contains, come out as their letter.
  std::string string() {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    ++at_;
    return text;
  }

  // A bare word is a key where "=" follows it, else a number.
  void word() {
    const auto begin = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    auto next = text_.find_first_not_of(" \t", at_);
    if (next != std::string_view::npos && text_[next] == '=') {
      key_ = word;
      if (depth_ == 0) part_ = word;
    } else if (key_ == "size" && depth_ == 1) {
      std::from_chars(word.data(), word.data() + word.size(), artifact_.size);
    }
  }

  void value(const std::string& text) {
    if (depth_ == 0 && key_ == "name") name_ = normalized_name(text);
    if (depth_ == 1 && (key_ == "url" || key_ == "path")) {
      artifact_.url = plain_url(text);
      if (artifact_.file.empty()) artifact_.file = file_name_of(text);
    }
    if (depth_ == 1 && key_ == "name") artifact_.file = file_name_of(text);
    if (depth_ == 2 && key_ == "sha256" && is_sha256(text)) artifact_.sha256 = text;
  }

  void open() {
    if (++depth_ == 1) artifact_ = {};
  }
  // Files of "sdist" and "archive" are dropped: only wheels were asked for.
  void close() {
    const bool complete = !artifact_.sha256.empty() && !artifact_.file.empty() && !name_.empty();
    if (depth_ == 1 && part_ == "wheels" && complete) found_[name_].push_back(artifact_);
    if (depth_ > 0) --depth_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  // The package, the key that was read last, and the last key of depth 0 ("wheels", "sdist").
  std::string name_, key_, part_;
  LockedArtifact artifact_;
  std::map<std::string, std::vector<LockedArtifact>> found_;
};

}  // namespace

std::map<std::string, std::vector<LockedArtifact>> read_uv_pylock(std::string_view text) {
  return PylockReader(text).read();
}

}  // namespace scankit::envspec
