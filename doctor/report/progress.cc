// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/progress.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"

namespace scankit::report {
namespace {

using Clock = Progress::Clock;
using std::chrono::seconds;

constexpr std::chrono::milliseconds kLook{100};   // how often the line is compared with what goes on
constexpr std::chrono::milliseconds kFirst{200};  // what is over by then was never drawn
constexpr seconds kSlow{10}, kAgain{30};          // off a terminal

struct Live : ProgressStep {
  Clock::time_point since = Clock::now();
  bool told = false;  // by a plain line
};

// The one line of the program. Everything is written under the lock and with one call, so that lines of
// several threads never mix.
class Line {
 public:
  // The pointer stays valid until close(), because a list does not move its elements.
  ProgressStep* open(const std::string& what) {
    const std::lock_guard guard(lock_);
    if (steps_.empty()) begin();
    steps_.push_back(Live{});
    steps_.back().what = what;
    return &steps_.back();
  }

  // The thread is joined outside the lock, which it needs to end.
  void close(const ProgressStep* step) {
    std::thread ended;
    {
      const std::lock_guard guard(lock_);
      steps_.remove_if([&](const Live& one) { return &one == step; });
      if (!steps_.empty()) return;
      terminal_.clear();
      terminal_.leave_signals();
      ended = std::move(ticker_);
      over_.notify_all();
    }
    if (ended.joinable()) ended.join();
  }

  // The step may only be changed under the lock, because the ticker reads it.
  template <typename Change>
  void change(ProgressStep* step, const Change& change) {
    const std::lock_guard guard(lock_);
    change(static_cast<Live&>(*step));
  }

  void say(const std::string& line) {
    const std::lock_guard guard(lock_);
    terminal_.write_line(line);
    last_line_ = Clock::now();
  }

  // Does nothing on a terminal, where the drawn line already shows it.
  void say_off_terminal(const std::string& line) {
    const std::lock_guard guard(lock_);
    if (terminal_.draws()) return;
    terminal_.write_line(cut_to(line, terminal_.columns()));
    last_line_ = Clock::now();
  }

  void abandon() {
    const std::lock_guard guard(lock_);
    terminal_.clear();
    terminal_.close();
  }

 private:
  // Called for the first step. The ticker starts with all signals blocked, so that the handler
  // never runs in it.
  void begin() {
    terminal_.open();
    terminal_.take_signals();
    last_line_ = began_ = Clock::now();
    const BlockedSignals none_for_the_ticker;
    try {
      ticker_ = std::thread([this, mine = ++generation_] { tick(mine); });
    } catch (const std::system_error&) {  // the program works without a progress line
    }
  }

  // `mine` ends a ticker whose last step is over although a new first step has come since.
  void tick(unsigned mine) {
    ::pthread_setname_np(::pthread_self(), "progress");
    std::unique_lock guard(lock_);
    while (!over_.wait_for(guard, kLook, [&] { return steps_.empty() || generation_ != mine; })) {
      const auto now = Clock::now();
      if (!terminal_.draws())
        say_slowly(now);
      else if (now - began_ >= kFirst)
        terminal_.draw(text(now, terminal_.columns()));
    }
  }

  std::string text(Clock::time_point now, std::size_t columns) {
    std::vector<ProgressStep> steps;
    for (Live& one : steps_) {
      one.age = std::chrono::duration_cast<seconds>(now - one.since);
      steps.push_back(one);
    }
    return progress_text(steps, columns);
  }

  // Off a terminal: one line after 10 s, then one every 30 s. A line of somebody else restarts the time.
  void say_slowly(Clock::time_point now) {
    const auto slow = [&](const Live& one) {
      return now - std::max(one.since, last_line_) >= (one.told ? kAgain : kSlow);
    };
    if (std::ranges::none_of(steps_, slow)) return;
    for (Live& one : steps_) one.told = true;
    last_line_ = now;
    constexpr std::size_t kPrefix = 9;  // "scankit: "
    const std::size_t columns = terminal_.columns();
    terminal_.write_line("scankit: " + text(now, columns > kPrefix ? columns - kPrefix : columns));
  }

  std::mutex lock_;
  std::condition_variable over_;
  std::list<Live> steps_;
  ProgressTerminal terminal_;
  Clock::time_point began_, last_line_;
  std::thread ticker_;
  unsigned generation_ = 0;
};

// Never destroyed: a thread may still use it when the program ends.
Line& line() {
  static Line* const the_one = new Line;  // NOLINT(cppcoreguidelines-owning-memory)
  return *the_one;
}

const Language* g_user_language = nullptr;

// The spoken language may be English for the facts that are being collected.
std::string for_the_user(const Message& text) { return fit_for_terminal(text.in(g_user_language)); }

}  // namespace

Progress::Progress(const Message& what) : step_(line().open(for_the_user(what))) {}
Progress::~Progress() { line().close(step_); }

// The words are translated before the lock is taken.
void Progress::now(const Message& what, std::chrono::milliseconds limit, Clock::time_point since) {
  const std::string words = for_the_user(what);
  const auto whole = std::chrono::ceil<seconds>(limit).count();
  const std::string until = whole > 0 ? for_the_user(message("stopped after {} s", whole)) : "";
  line().change(step_, [&](Live& step) {
    step.what = words;
    step.limit = until;
    step.since = since;
    step.have = step.size = 0;
    step.told = false;
  });
}

void Progress::act(const Message& what, std::chrono::milliseconds limit) {
  now(what, limit);
  line().say_off_terminal(for_the_user(what));
}

void Progress::count(std::size_t done, std::size_t total) {
  line().change(step_, [&](Live& step) {
    step.done = done;
    step.total = total;
  });
}

void Progress::bytes(std::uint64_t have, std::uint64_t size) {
  line().change(step_, [&](Live& step) {
    step.have = have;
    step.size = size;
  });
}

void progress_line(const std::string& text) { line().say(text); }
void progress_note(const std::string& sentence) { line().say("scankit: " + plain(sentence, false)); }

IfInterrupted::IfInterrupted(const std::string& sentence) {
  ProgressTerminal::say_if_interrupted(for_the_user(sentence) + "\n");
}
IfInterrupted::~IfInterrupted() { ProgressTerminal::say_if_interrupted(""); }

void set_progress_language(const Language* language) { g_user_language = language; }

void abandon_progress() { line().abandon(); }

}  // namespace scankit::report
