// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/progress_terminal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "doctor/report/plain.h"
#include "doctor/report/text.h"

namespace scankit {
namespace {

constexpr std::string_view kClear = "\r\x1b[J";
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t kUsualColumns = 80;

// What the handler of signals reads.
std::atomic<bool> on_screen{false}, writing{false}, ended{false};
std::array<char, 512> last_words{};
std::atomic<std::size_t> last_words_size{0};

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// Who writes has blocked signals, so it is another thread that is waited for here.
void end_by(int number) {
  ended = true;
  for (int i = 0; i < 200 && writing; ++i) ::poll(nullptr, 0, 1);
  if (on_screen) put(kClear);
  put({last_words.data(), last_words_size});
  ::signal(number, SIG_DFL);
  ::raise(number);
}

bool is_handled_by(int number, void (*handler)(int)) {
  struct sigaction now {};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler == handler;  // NOLINT(cppcoreguidelines-pro-type-union-access): as POSIX declares it
}

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}
BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::string fit_for_terminal(std::string_view text) { return plain(text, !locale_is_utf8(variable)); }

void ProgressTerminal::open() {
  const std::string kind = variable("TERM").value_or("dumb");
  draws_ = ::isatty(STDERR_FILENO) == 1 && !kind.empty() && kind != "dumb";
}

std::size_t ProgressTerminal::columns() const {
  struct winsize size {};
  if (::isatty(STDERR_FILENO) != 1) return std::numeric_limits<std::size_t>::max();
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns - 1;
  return std::max(size.ws_col, static_cast<unsigned short>(2)) - 1u;  // the last column wraps on some
}

void ProgressTerminal::write(std::string_view text, bool drawn) {
  const BlockedSignals until_it_is_out;
  writing = true;
  if (!ended) {
    put(text);
    on_screen = drawn;
  }
  writing = false;
}

void ProgressTerminal::draw(const std::string& text) {
  if (closed_ || !draws_) return;
  const std::size_t wide = columns();
  if (on_screen && text == drawn_ && wide == drawn_columns_) return;
  drawn_ = text;
  drawn_columns_ = wide;
  write(std::string(kClear) + text + "\r", true);
}

void ProgressTerminal::clear() {
  if (on_screen) write(kClear, false);
}

void ProgressTerminal::close() { closed_ = true; }

void ProgressTerminal::write_line(std::string_view line) {
  write((on_screen ? std::string(kClear) : "").append(line) + "\n", false);
}

void ProgressTerminal::take_signals() {
  for (const int number : kSignals)
    if (is_handled_by(number, SIG_DFL)) ::signal(number, end_by);
}

void ProgressTerminal::leave_signals() {
  for (const int number : kSignals)
    if (is_handled_by(number, end_by)) ::signal(number, SIG_DFL);
}

void ProgressTerminal::say_if_interrupted(const std::string& line) {
  last_words_size = 0;
  std::copy_n(line.begin(), std::min(line.size(), last_words.size()), last_words.begin());
  last_words_size = std::min(line.size(), last_words.size());
}

}  // namespace scankit
