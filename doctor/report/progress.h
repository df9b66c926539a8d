// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "doctor/base/message.h"
#include "doctor/report/progress_terminal.h"

namespace scankit {

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

}  // namespace scankit
