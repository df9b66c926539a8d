// SPDX-License-Identifier: Apache-2.0
#include "envspec/index/index_query.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

using Clock = std::chrono::steady_clock;
using Questions = std::vector<IndexQuestion>;

constexpr int kMostRuns = 40;  // an installer that names none of what it lacks halves them: 20 halvings

// The last line in which the installer says what went wrong.
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
  return plain(last, false).substr(0, 400);
}

class Asker {
 public:
  explicit Asker(const IndexRequest& request) : request_(request), end_(Clock::now() + request.patience) {}

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
      const bool uv = request_.installer.kind == Installer::Kind::Uv;
      const auto looked = [&](std::size_t more) { show(done_ + std::min(more, questions.size())); };
      const IndexRun run = uv ? ask_uv(request_.installer, questions, left)
                              : ask_pip(request_.installer, questions, left, looked);
      if (run.ok) return take(questions, run);
      if (!learn(run, questions)) return split(questions);
    }
  }

  std::string did_not_answer() const {
    return say("the index did not answer within {} seconds", request_.patience.count());
  }

  // False where the run says nothing about which of several it could not have.
  bool learn(const IndexRun& run, Questions& questions) {
    if (run.timed_out || run.unreachable) {
      stopped_ = run.timed_out ? did_not_answer() : say("the index could not be reached");
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

  // The installer's own words may hold addresses, which a lock must not: they are told as a note.
  std::string why(bool named) const {
    return named ? say("the index has no wheel of this version for this Python and machine")
                 : say("{} failed when it was asked", name_of(request_.installer.kind));
  }

  // "No matching distribution found for NAME==VERSION" (pip), "no version of NAME==VERSION" (uv).
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
    auto source = ask_source(request_.installer, one, left);
    if (!source) return false;
    reply_.sources[one.name] = *std::move(source);
    return true;
  }

  void split(const Questions& questions) {
    const auto middle = questions.begin() + static_cast<std::ptrdiff_t>(questions.size() / 2);
    ask({questions.begin(), middle});
    ask({middle, questions.end()});
  }

  void take(const Questions& questions, const IndexRun& run) {
    for (const IndexQuestion& one : questions) {
      const auto found = run.offered.find(one.name);
      if (found == run.offered.end())
        reply_.refused[one.name] = say("the index tells no sha256 of it");
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
    line = name_of(request_.installer.kind) + ": " + line;
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

}  // namespace scankit
