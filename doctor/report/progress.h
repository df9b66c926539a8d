// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"

namespace scankit::report {

// A step as it is at one moment.
struct ProgressStep {
  std::string what;
  std::size_t done = 0, total = 0;   // things; total 0: how many is not known
  std::uint64_t have = 0, size = 0;  // bytes; both 0: nothing is downloaded
  std::chrono::seconds age{0};       // since it began
  std::string limit;                 // "given up after 60 s"; "": it is waited for as long as it takes
};

// One line about all steps, the outermost first:
//   [12/90, 34 s] q011-fp32-b2  7 s (given up after 60 s)
// If it is too wide, the end of the words goes first, then the limit; the numbers stay longest.
std::string progress_text(const std::vector<ProgressStep>& steps, std::size_t columns);

// While the object lives, no signal is delivered to this thread or to the threads that it starts.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Control bytes become \xNN, and so do letters outside ASCII if the locale is not UTF-8.
std::string fit_for_terminal(std::string_view text);

// Standard error with one line that can be drawn and removed. The cursor stays at its beginning: a
// terminal that wraps its lines again when it becomes narrower keeps the cursor there, so that all
// rows below belong to the line and can be erased. Only one thread at a time may use it; Line in
// progress.cc locks.
class ProgressTerminal {
 public:
  void open();  // looks whether it is a terminal that knows escapes
  bool draws() const { return draws_; }
  std::size_t columns() const;  // of the terminal as it is now; without one, no end
  void draw(const std::string& text);
  void clear();
  void close();  // nothing is drawn from now on
  void write_line(std::string_view line);

  // While these handlers are installed, Ctrl-C, a hang-up and SIGTERM remove the line before they end the
  // program. A handler that somebody else has installed is left alone.
  void take_signals();
  void leave_signals();
  static void say_if_interrupted(const std::string& line);  // "": nothing more than the signal says itself

 private:
  void write(std::string_view text, bool drawn);

  bool draws_ = false, closed_ = false;
  std::string drawn_;
  std::size_t drawn_columns_ = 0;
};

// Tells the waiting user what is going on: one step, for the lifetime of the object. Steps are nested
// across the whole program, and all of them share one line on standard error:
//   - on a terminal the line is redrawn as time passes, and removed with the last step;
//   - anywhere else, and if TERM is unset or "dumb", a plain line is printed if something takes long: after
//     10 s, then every 30 s, without escapes.
// Ctrl-C removes the line and ends the program by that signal, unless somebody else handles the
// signal. Any thread may call these functions.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(const Message& what = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What the step does next, since when, and after how long it is given up (0: never).
  void now(const Message& what, std::chrono::milliseconds limit = {}, Clock::time_point since = Clock::now());
  // The same, and printed at once if there is no terminal: for what changes the user's machine or
  // queries a server.
  void act(const Message& what, std::chrono::milliseconds limit = {});
  void count(std::size_t done, std::size_t total);     // things; 0: how many is not known
  void bytes(std::uint64_t have, std::uint64_t size);  // of a download; 0: the server does not say

 private:
  ProgressStep* step_;
};

// Prints a line that stays, on standard error. While a step may be going on, all messages must come this
// way, or they would be mixed with the progress line.
void progress_line(const std::string& line);
void progress_note(const std::string& sentence);  // the same after "scankit: ", made plain

// While the object lives: a sentence to print if Ctrl-C ends the program, such as what is left behind.
class IfInterrupted {
 public:
  explicit IfInterrupted(const std::string& sentence);
  ~IfInterrupted();
  IfInterrupted(const IfInterrupted&) = delete;
  IfInterrupted& operator=(const IfInterrupted&) = delete;

 private:
  Progress step_;  // the signals are heard as long as there is a step
};

// The language of the steps, which also applies while facts are collected in English. To be set before
// the first step.
void set_progress_language(const Language* language);

// Removes the line for good, because some thread still works on something that nobody waits for.
void abandon_progress();

}  // namespace scankit::report
