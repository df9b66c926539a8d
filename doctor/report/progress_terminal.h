// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>
#include <string>
#include <string_view>

namespace scankit {

// No signal is delivered to this thread, nor to those that it starts, as long as the object lives.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Control bytes become \xNN, and what is not ASCII too where the locale is not UTF-8.
std::string fit_for_terminal(std::string_view text);

// Standard error, with one line that comes and goes. The cursor waits at its beginning: a terminal that wraps
// its lines anew when it becomes narrower keeps the cursor there, and all rows below are ours to erase. One
// thread at a time.
class ProgressTerminal {
 public:
  void open();  // looks whether it is a terminal that knows escapes
  bool draws() const { return draws_; }
  std::size_t columns() const;  // of the terminal as it is now; without one, no end
  void draw(const std::string& text);
  void clear();
  void close();  // nothing is drawn from now on
  void write_line(std::string_view line);

  // Ctrl-C, a hang-up and a polite kill take the line away before they end the program. Who has asked for
  // them already keeps them.
  void take_signals();
  void leave_signals();
  static void say_if_interrupted(const std::string& line);  // "": nothing more than the signal says itself

 private:
  void write(std::string_view text, bool drawn);

  bool draws_ = false, closed_ = false;
  std::string drawn_;
  std::size_t drawn_columns_ = 0;
};

}  // namespace scankit
