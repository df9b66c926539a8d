// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "envspec/index/index.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// First the question for a source archive, then Asker, which gets answers for many packages out of
// installers that only ever name one problem. What the installers print is not an interface; the phrases
// here are those of current pip and uv, and an unknown one costs time or leaves an artifact empty.
namespace scankit::envspec {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kPlace = " from ";  // pip's word between a requirement and its URL

// The SHA-256 that follows `label`; "" where the text after it is not one.
std::string hash_behind(const std::string& said, std::string_view label) {
  const auto at = said.find(label);
  if (at == std::string::npos) return "";
  std::string_view rest = trimmed(std::string_view(said).substr(at + label.size()));
  constexpr std::string_view kKind = "sha256:", kPipsKind = "sha256 ";
  for (const std::string_view kind : {kKind, kPipsKind})
    if (rest.starts_with(kind)) rest.remove_prefix(kind.size());
  std::string hash(rest.substr(0, 64));
  return is_sha256(hash) ? hash : "";
}

// "DEBUG No cache entry for: URL" of uv's log, whatever it says of its cache: the one of an archive of that version.
std::string url_in_log(const std::string& said, const IndexQuestion& question) {
  constexpr std::string_view kLabel = " for: ";
  for (auto at = said.find(kLabel); at != std::string::npos; at = said.find(kLabel, at + 1)) {
    const auto begin = at + kLabel.size();
    std::string url = said.substr(begin, said.find_first_of(" \n", begin) - begin);
    const std::string file = file_name_of(url), name = file.substr(0, question.name.size());
    if (normalized_name(name) == question.name &&
        file.substr(name.size()).starts_with("-" + question.version + "."))
      return url;
  }
  return "";
}

// "    NAME==VERSION from URL (from -r FILE (line 1)):" of pip.
std::string url_of(const std::string& said, const IndexQuestion& question) {
  std::string label = question.name + "==" + question.version;
  label += kPlace;
  const auto at = said.find(label);
  if (at == std::string::npos) return url_in_log(said, question);
  const auto begin = at + label.size();
  return said.substr(begin, said.find_first_of(" \n", begin) - begin);
}

// The file name of a source distribution as PEP 625 defines it, where the installer does not
// name the file.
std::string usual_file_name(const IndexQuestion& question) {
  std::string name = normalized_name(question.name);
  std::ranges::replace(name, '-', '_');
  return name + "-" + question.version + ".tar.gz";
}

// uv has no `pip download`: it would install into an empty target, which the wrong hash prevents. Only its log has URLs.
Words command_of(const installer::Installer& installer, const std::string& questions,
                 const std::string& folder) {
  Words argv = installer.program;
  Words more;
  if (installer.kind == installer::Installer::Kind::Uv) {
    more = {"pip", "install", "--no-progress", "--verbose", "--target", folder + "/target"};
    if (!installer.environment.empty()) more.insert(more.end(), {"--python", installer.environment});
  } else {
    more = {"--disable-pip-version-check",
            "--no-input",
            "download",
            "--quiet",
            "--retries",
            "1",
            "--no-cache-dir",
            "--dest",
            folder};
  }
  argv.insert(argv.end(), more.begin(), more.end());
  for (const char* word : {"--no-deps", "--no-binary", ":all:", "--require-hashes", "-r"})
    argv.emplace_back(word);
  argv.push_back(questions);
  return argv;
}

}  // namespace

bool is_access_refused(const std::string& said) {
  return says_one_of(said, {"403 Forbidden", "401 Unauthorized", "authentication credentials",
                            "401 Client Error", "403 Client Error", "407 Client Error"});
}

// uv's first sentence is the same where the network is off, where it would have to build, and for another Python.
bool is_refusal(const std::string& said) {
  if (is_access_refused(said) ||
      says_one_of(said, {"network was disabled", "network connectivity is disabled",
                         "building from source is disabled", "current Python version", "Retrying (Retry("}))
    return false;
  return says_one_of(said, {"No solution found", "no version of", "was not found in the package registry",
                            "No matching distribution found", "ResolutionImpossible",
                            "Could not find a version that satisfies"});
}

// A file that ends in .whl is not a source archive, whatever --no-binary asked for.
std::optional<LockedArtifact> read_source_hash(const std::string& said, const IndexQuestion& question) {
  std::string hash = hash_behind(said, "Computed:");
  if (hash.empty()) hash = hash_behind(said, " Got ");
  if (hash.empty()) return std::nullopt;
  const std::string url = url_of(said, question);
  const std::string file = url.empty() ? usual_file_name(question) : file_name_of(url);
  if (!is_file_name(file) || file.ends_with(".whl")) return std::nullopt;
  return LockedArtifact{file, hash, 0, plain_url(url)};
}

// The line in which the installer says what went wrong: the last one that starts with "error:", else the
// last one that is not blank. At most 400 bytes.
std::string last_line(const std::string& said) {
  std::string last, error;
  for (std::size_t at = 0; at < said.size();) {
    const auto end = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, end - at);
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    if (line.starts_with("ERROR:") || line.starts_with("error:")) error = line;
    at = end + 1;
  }
  if (!error.empty()) last = trimmed(error.substr(error.find(':') + 1));
  return report::plain(last, false).substr(0, 400);
}

SourceReply ask_source(const installer::Installer& installer, const IndexQuestion& question,
                       std::chrono::milliseconds node_deadline) {
  const auto folder = TemporaryDirectory::create("scankit-index");
  if (!folder) return {.said = english(folder.error().message)};
  const std::string file = folder->path() + "/questions.txt";
  const std::string line =
      question.name + "==" + question.version + " --hash=sha256:" + std::string(64, '0') + "\n";
  if (auto written = write_file_atomically(file, line); !written)
    return {.said = english(written.error().message)};
  const IndexRun run = run_installer(command_of(installer, file, folder->path()),
                                     installer::folder_of(installer), node_deadline);
  // No file has a hash of 64 zeros, so that a successful run tells nothing about the archive.
  if (run.ok) return {.said = run.said};
  SourceReply reply{read_source_hash(run.said, question), false, run.timed_out, run.said};
  reply.refused = !reply.archive && !run.timed_out && is_refusal(run.said);
  return reply;
}

namespace {

using Clock = std::chrono::steady_clock;
using Questions = std::vector<IndexQuestion>;

constexpr int kMostRuns = 40;  // an installer that names none of what it lacks halves them: 20 halvings

// pip and uv either answer all questions of a run or fail and name at most one package. So each failed run
// removes one package and the rest is asked again; where the output names none, the questions are halved
// until the package is alone. One deadline and one limit on runs cover all of that, and what is left then
// is refused with the reason.
class Asker {
 public:
  explicit Asker(const IndexRequest& request)
      : request_(request), end_(Clock::now() + request.node_deadline) {}

  IndexReply all() {
    if (!request_.questions.empty()) ask(request_.questions);
    return std::move(reply_);
  }

 private:
  void ask(Questions questions) {
    while (!questions.empty()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
      if (stopped_.empty() && (left.count() <= 0 || runs_ >= kMostRuns)) stopped_ = did_not_answer();
      if (!stopped_.empty()) return refuse(questions, stopped_);
      ++runs_;
      const bool uv = request_.installer.kind == installer::Installer::Kind::Uv;
      const auto looked = [&](std::size_t more) { show(done_ + std::min(more, questions.size())); };
      const IndexRun run = uv ? ask_uv(request_.installer, questions, left)
                              : ask_pip(request_.installer, questions, left, looked);
      if (run.ok) return take(questions, run);
      if (!learn(run, questions)) return split(questions);
    }
  }

  std::string did_not_answer() const {
    return english(message("the index did not answer within {} seconds", request_.node_deadline.count()));
  }

  // Removes from `questions` the package that made the run fail, after looking for its source archive.
  // False where the output names none of several packages.
  bool learn(const IndexRun& run, Questions& questions) {
    if (run.timed_out || run.unreachable) {
      stopped_ = run.timed_out ? did_not_answer() : english(message("the index could not be reached"));
      note(run);
      return true;
    }
    const auto named = [&](const IndexQuestion& one) { return is_named(run.said, one); };
    const auto lacking = std::ranges::find_if(questions, named);
    if (lacking == questions.end() && questions.size() > 1) return false;
    const auto gone = lacking == questions.end() ? questions.begin() : lacking;
    if (lacking == questions.end() || !find_source(*gone)) note(run);
    refuse({*gone}, why(lacking != questions.end()));
    questions.erase(gone);
    return true;
  }

  // Becomes why_no_artifact in the lock. The installer's own words may contain addresses, which a lock
  // must not have; they are reported as a note.
  std::string why(bool named) const {
    return named ? english(message("the index has no wheel of this version for this Python and machine"))
                 : english(message("the query with {} failed", installer::name_of(request_.installer.kind)));
  }

  // Whether the output says that this package cannot be had: "No matching distribution found for
  // NAME==VERSION" (pip), "there is no version of NAME==VERSION" or "Because NAME was not found in the
  // package registry" (uv).
  static bool is_named(const std::string& said, const IndexQuestion& one) {
    for (const char* words : {"No matching distribution found for ", "there is no version of ",
                              "no wheels with a matching ", "Because ", "because "}) {
      const std::string phrase = words + one.name;
      for (auto at = said.find(phrase); at != std::string::npos; at = said.find(phrase, at + 1)) {
        const std::string rest = said.substr(at + phrase.size(), one.version.size() + 3);
        if (rest.starts_with("==" + one.version) || rest.starts_with(" was not found")) return true;
      }
    }
    return false;
  }

  bool find_source(const IndexQuestion& one) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
    if (left.count() <= 0) return false;
    SourceReply source = ask_source(request_.installer, one, left);
    if (!source.archive) return false;
    reply_.sources[one.name] = *std::move(source.archive);
    return true;
  }

  void split(const Questions& questions) {
    const auto middle = questions.begin() + static_cast<std::ptrdiff_t>(questions.size() / 2);
    ask({questions.begin(), middle});
    ask({middle, questions.end()});
  }

  // A package of a successful run without an answer has no SHA-256 on the index, which PEP
  // 503 leaves optional.
  void take(const Questions& questions, const IndexRun& run) {
    for (const IndexQuestion& one : questions) {
      const auto found = run.offered.find(one.name);
      if (found == run.offered.end())
        reply_.refused[one.name] = english(message("the index provides no sha256 for it"));
      else
        reply_.offered[one.name] = found->second;
    }
    tell(questions.size());
  }

  void refuse(const Questions& questions, const std::string& why) {
    for (const IndexQuestion& one : questions) reply_.refused[one.name] = why;
    tell(questions.size());
  }

  void note(const IndexRun& run) {
    std::string line = last_line(run.said);
    if (line.empty()) return;
    line = installer::name_of(request_.installer.kind) + ": " + line;
    if (std::ranges::find(reply_.notes, line) == reply_.notes.end()) reply_.notes.push_back(line);
  }

  void tell(std::size_t more) {
    done_ += more;
    show(done_);
  }

  void show(std::size_t done) const {
    if (request_.progress) request_.progress(done, request_.questions.size());
  }

  const IndexRequest& request_;
  const Clock::time_point end_;
  IndexReply reply_;
  std::string stopped_;
  int runs_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

IndexReply ask_index(const IndexRequest& request) { return Asker(request).all(); }

}  // namespace scankit::envspec
