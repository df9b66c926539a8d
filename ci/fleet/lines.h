// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

// What a node tells the launcher on standard output, among whatever else is printed there.
namespace scankit::fleet {

struct Line {
  std::string event, node;  // "started", "part", "done"
  double clock = 0;         // of the node; of a part: which
  std::string step;         // Slurm's name of it, "7.0"
  std::string text;         // done: why it did not write its file; of a part: that part
};
std::string line_text(const Line& line);
std::optional<Line> line_of(std::string_view text);

// A node's file as lines, for a node that cannot write it. Short ones: slurmstepd passes on whole lines of up
// to 1024 bytes, and cuts longer ones among those of other nodes (SLURM_IO_MAX_MSG_LEN).
std::string as_parts(const std::string& node, std::string_view text);

// Puts such files together again.
class Assembler {
 public:
  // The text, once its node is done.
  std::optional<std::string> add(const Line& line);
  const std::map<std::string, std::string>& unfinished() const { return texts_; }

 private:
  std::map<std::string, std::string> texts_;  // by node
};

// How long a node may collect facts in addition to its command, and how long the launcher waits for both.
// `timeout` is that of the command, in seconds.
std::chrono::seconds facts_limit(int timeout);
std::chrono::seconds node_deadline(int timeout);

// Cuts a stream into lines. What follows the last line end stays inside until more comes.
class LineCutter {
 public:
  template <class Take>
  void add(std::string_view bytes, Take take) {
    for (;;) {
      const auto end = bytes.find('\n');
      rest_ += bytes.substr(0, end);
      if (end == std::string_view::npos) return;
      take(rest_);
      rest_.clear();
      bytes.remove_prefix(end + 1);
    }
  }

 private:
  std::string rest_;
};

}  // namespace scankit::fleet
