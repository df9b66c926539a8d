// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <termios.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/files.h"

namespace scankit::run {

// What remains of a stream of any length: its end, and the place where its first error begins. A build or a
// training run can print gigabytes after the traceback that explains its death.
class KeptOutput {
 public:
  static constexpr std::size_t kEnd = 256u << 10;        // bytes of the end
  static constexpr std::size_t kFirstError = 64u << 10;  // bytes from the first error on
  static constexpr std::size_t kBeforeError = 4u << 10;  // and bytes that precede it

  void append(std::string_view bytes);
  // Everything, or the first error and the end with a line between them that says how much is missing.
  std::string text() const;
  std::uint64_t bytes() const { return total_; }
  // Whether a part of the stream is missing in text().
  bool is_cut() const;
  // The last byte; '\n' if there is none.
  char last() const;

 private:
  void find_first_error(std::string_view bytes);
  std::string end_bytes(std::size_t most) const;

  std::string ring_;            // grows to kEnd, then is written round and round
  std::size_t at_ = 0;          // where the next byte of a full ring goes, which is also its oldest byte
  std::uint64_t total_ = 0;     // bytes so far
  std::string first_;           // from kBeforeError before the first error on
  std::uint64_t first_at_ = 0;  // where first_ begins in the stream
  bool found_ = false;
};

// What is between the command and the screen: as little as possible. A stream that is a terminal for us is
// one for the command too, a pipe is a pipe, and everything else is handed over as it is.

// A stream that passes through us: what the command writes into `childs` is read from `ours` and written to
// `outer`, unchanged and in order. One object may serve both descriptors 1 and 2.
struct RelayedStream {
  int outer = -1;  // 1 or 2
  bool terminal = false;
  Descriptor ours, childs;
  struct termios modes {};  // of a terminal: what the command was last seen to have set
  std::string pending;      // read, and not yet written
  std::size_t written = 0;  // bytes of `pending` that are
  KeptOutput kept;
  bool open = true;   // `ours` can still give something
  bool lost = false;  // nobody reads `outer` any more: the command's next write fails, as without us
};

// A regular file that the command writes into directly. Its end is read afterwards.
struct DirectFile {
  int descriptor = -1;     // 1 or 2
  std::uint64_t from = 0;  // where the command's output begins
};

struct Streams {
  std::vector<RelayedStream> relayed;  // at most two
  int out = -1, err = -1;              // index in `relayed` of what replaces 1 and 2; -1: untouched
  std::vector<DirectFile> files;
};

// Looks at our descriptors 1 and 2 and prepares what the command gets. Where no pty or pipe can be made,
// the stream is left untouched: the command must run in any case.
Streams open_streams();

// Moves what is there: reads if everything that was read is written, and writes a piece if `outer` takes it.
void read_stream(RelayedStream& stream);
void write_stream(RelayedStream& stream);
inline bool is_pending(const RelayedStream& stream) { return stream.written < stream.pending.size(); }

// Sets the size of the outer terminals on the inner ones.
void copy_terminal_sizes(Streams& streams);

// Programs such as those that use curses set the modes of the terminal through their standard output, which
// is the inner terminal. The keys come from the outer one, so the same modes are set there.
void mirror_terminal_modes(RelayedStream& stream);

// What can be known of the output, standard output first: of streams that were relayed and of files.
struct KeptText {
  std::string text;
  std::uint64_t bytes = 0;  // of the whole output, as far as it was seen
  bool cut = false;         // a part of it was not kept
};
KeptText kept_text(const Streams& streams);

// Whether the screen's cursor is in the middle of a line that the command has begun.
bool ends_within_line(const Streams& streams);

}  // namespace scankit::run
