// SPDX-License-Identifier: Apache-2.0
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

#include "doctor/base/columns.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"
#include "doctor/report/text.h"

namespace scankit::report {
namespace {

constexpr std::size_t kShortestWords = 12;  // below that they say nothing: better the line loses its limit
constexpr std::chrono::seconds kShown{1};   // an age below it is no news
constexpr std::uint64_t kMegabyte = 1000000;

std::string fraction(std::uint64_t done, std::uint64_t total) {
  return std::to_string(std::min(done, total)) + "/" + std::to_string(total);
}

// "120/531 MB (22 %)". Without a size, only what has arrived. Megabytes of 10^6 bytes; "" below one.
std::string bytes_text(const ProgressStep& step) {
  if (step.size < kMegabyte)
    return step.have < kMegabyte ? "" : std::to_string(step.have / kMegabyte) + " MB";
  const std::uint64_t percent = std::min(step.have, step.size) * 100 / step.size;
  return fraction(step.have / kMegabyte, step.size / kMegabyte) + " MB (" + std::to_string(percent) + " %)";
}

std::string age_text(const ProgressStep& step) {
  return step.age < kShown ? "" : std::to_string(step.age.count()) + " s";
}

// "[12/90, 34 s] ", for the innermost step that knows how many things it has to do. The age is left out
// if it is already shown at the end of the line, because that step is the innermost of all.
std::string head_of(const std::vector<ProgressStep>& steps) {
  const auto counted =
      std::find_if(steps.rbegin(), steps.rend(), [](const ProgressStep& step) { return step.total > 0; });
  if (counted == steps.rend()) return "";
  std::string text = "[" + fraction(counted->done, counted->total);
  // rbegin() is the innermost step.
  const std::string age = counted == steps.rbegin() ? "" : age_text(*counted);
  if (!age.empty()) text += ", " + age;
  return text + "] ";
}

}  // namespace

std::string progress_text(const std::vector<ProgressStep>& steps, std::size_t columns) {
  if (steps.empty()) return "";
  const ProgressStep& now = steps.back();
  const auto named =
      std::find_if(steps.rbegin(), steps.rend(), [](const ProgressStep& step) { return !step.what.empty(); });
  const std::string head = head_of(steps), what = named == steps.rend() ? "" : named->what;
  std::string numbers, age = age_text(now), limit;
  if (const std::string bytes = bytes_text(now); !bytes.empty()) numbers += "  " + bytes;
  if (!age.empty()) numbers += "  " + age;
  if (!age.empty() && !now.limit.empty()) limit = " (" + now.limit + ")";
  const std::size_t fixed = columns_of(head) + columns_of(numbers);
  // Words are cut first, but not below kShortestWords columns; then the limit goes before they
  // are cut further.
  if (fixed + columns_of(limit) + std::min(columns_of(what), kShortestWords) > columns) limit.clear();
  const std::size_t taken = fixed + columns_of(limit);
  return cut_to(head + cut_to(what, columns > taken ? columns - taken : 0) + numbers + limit, columns);
}

namespace {

// Back to the first column, and erase to the end of the screen (ECMA-48, ED): the line may
// have been wrapped.
constexpr std::string_view kClear = "\r\x1b[J";
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t kUsualColumns = 80;

// What the signal handler reads. Everything here is lock-free or plain memory, because a handler
// must not lock.
std::atomic<bool> on_screen{false}, writing{false}, ended{false};
std::array<char, 512> last_words{};
std::atomic<std::size_t> last_words_size{0};

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Uses write(2), which a signal handler may call (signal-safety(7)).
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// The signal handler. A thread that writes has blocked signals, so `writing` can only be set by another
// thread, which gets 200 ms to finish its line.
void end_by(int number) {
  ended = true;
  for (int i = 0; i < 200 && writing; ++i) ::poll(nullptr, 0, 1);
  if (on_screen) put(kClear);
  put({last_words.data(), last_words_size});
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Somebody who has installed a handler keeps it.
bool is_handled_by(int number, void (*handler)(int)) {
  struct sigaction now {};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler == handler;  // NOLINT(cppcoreguidelines-pro-type-union-access): as POSIX declares it
}

}  // namespace

// Every thread that writes to the terminal does so with signals blocked; see end_by().
BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}
BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::string fit_for_terminal(std::string_view text) { return plain(text, wants_ascii(variable)); }

// Without a TERM nothing is known about the terminal's escapes.
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
  // After the signal handler has cleared the line, nothing may draw it again.
  if (!ended) {
    put(text);
    on_screen = drawn;
  }
  writing = false;
}

void ProgressTerminal::draw(const std::string& text) {
  if (closed_ || !draws_) return;
  const std::size_t wide = columns();
  // A line that has not changed is not drawn again, unless the terminal has been resized and may
  // have wrapped it.
  if (on_screen && text == drawn_ && wide == drawn_columns_) return;
  drawn_ = text;
  drawn_columns_ = wide;
  // The cursor goes back to the first column; progress.h says why.
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
  // A signal between these statements prints too little, never something undefined.
  last_words_size = 0;
  std::size_t size = std::min(line.size(), last_words.size());
  while (size > 0 && size < line.size() && (static_cast<unsigned char>(line[size]) & 0xC0u) == 0x80u)
    --size;  // no half of a letter
  std::copy_n(line.begin(), size, last_words.begin());
  last_words_size = size;
}

}  // namespace scankit::report
