// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// A step as it is at one moment.
struct ProgressStep {
  std::string what;
  std::size_t done = 0, total = 0;   // things; total 0: how many is not known
  std::uint64_t have = 0, size = 0;  // bytes; both 0: nothing is downloaded
  std::chrono::seconds age{0};       // since it began
  std::string limit;                 // "given up after 60 s"; "": it is waited for as long as it takes
};

// The columns that the text takes on a terminal: two for East Asian letters, none for combining marks.
std::size_t columns_of(std::string_view text);

// The text, cut at its end so that it takes at most `columns`, with "..." if there is room for that.
std::string cut_to(std::string_view text, std::size_t columns);

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

}  // namespace scankit
