// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace scankit {

// Follows Python's tracebacks, also where pip, loggers or progress bars indent them. The column of
// "Traceback" is the column at which the exception is printed; lines in between are indented further.
// rich draws a box around the frames, and prints the exception below it.
class Tracebacks {
 public:
  void line(std::uint64_t number, const std::string& text);
  // The number of the traceback that the line belongs to, 0 for none. A message may continue for some
  // lines after the exception.
  std::uint64_t chain(std::uint64_t number) const;
  // Whether the line belongs to a traceback of which Python says that it ignores the exception.
  bool ignored(std::uint64_t number) const { return ignored_ && (inside_ || number == ended_); }

 private:
  std::uint64_t chain_ = 0, ended_ = 0;
  std::size_t column_ = 0;
  bool inside_ = false, chained_ = false, boxed_ = false, ignored_ = false, next_ignored_ = false;
};

}  // namespace scankit
