// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "doctor/report/progress_terminal.h"

namespace scankit {

class Language;

// What is going on, for whoever waits: one step, from its construction to its end. Steps stand inside each
// other across the whole program, and all of them share one line on standard error:
//  - on a terminal it is drawn anew while time passes, and taken away with the last step;
//  - elsewhere, and where TERM is unset or "dumb", a plain line comes only when something takes long: after
//    10 s, then every 30 s. No escapes.
// Ctrl-C takes the line away and ends the program by that signal, unless somebody else has asked for it. Any
// thread may call; what is said in English is said anew in the user's language.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(const std::string& what = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The next thing that this step does, since when, and after how long it is given up (0: never).
  void now(const std::string& what, std::chrono::milliseconds limit = {},
           Clock::time_point since = Clock::now());
  // The same, and off a terminal said at once: what changes the user's machine, or asks somebody else's.
  void act(const std::string& what, std::chrono::milliseconds limit = {});
  void count(std::size_t done, std::size_t total);     // things; 0: how many is not known
  void bytes(std::uint64_t have, std::uint64_t size);  // of a download; 0: the server does not say

 private:
  ProgressStep* step_;
};

// A line that stays, on standard error: everything that is said while a step may be going on comes this way.
void progress_line(const std::string& line);
void progress_note(const std::string& sentence);  // the same after "scankit: ", made plain

// What Ctrl-C leaves behind, said where it ends the program: as long as the object lives.
class IfInterrupted {
 public:
  explicit IfInterrupted(const std::string& sentence);
  ~IfInterrupted();
  IfInterrupted(const IfInterrupted&) = delete;
  IfInterrupted& operator=(const IfInterrupted&) = delete;

 private:
  Progress step_;  // the signals are heard as long as there is a step
};

// Steps are told in this language, also from where facts are collected, which is done in English.
void set_progress_language(const Language* language);

// Takes the line away for good: some thread still works on what nobody waits for.
void abandon_progress();

}  // namespace scankit
