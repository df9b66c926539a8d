// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ostream>
#include <string>

namespace scankit {

// What is going on, for who waits: one bar that redraws itself on a terminal, a line per phase elsewhere. To
// stderr, never among the answer.
class Progress {
 public:
  Progress(std::ostream& out, bool is_terminal, unsigned phases)
      : out_(out), bar_(is_terminal), phases_(phases) {}
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void phase(const std::string& name);
  // How far the phase is; moves the bar, says nothing without a terminal.
  void part(std::size_t done, std::size_t of);
  void finish();  // takes the bar away

 private:
  std::ostream& out_;
  bool bar_;
  void draw(unsigned full);
  unsigned phases_, done_ = 0, drawn_ = 0;
  std::string name_;
};

}  // namespace scankit
