// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/interruption.h"

#include <array>
#include <csignal>

#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t came = 0;
std::array<struct sigaction, kSignals.size()> handlers_before;

void note_signal(int number) { came = number; }

}  // namespace

Interruption::Interruption() {
  came = 0;
  // No SA_RESTART: a signal must interrupt waitpid(2), so that run_installer() can pass it on.
  struct sigaction action = {};
  action.sa_handler = note_signal;  // NOLINT(cppcoreguidelines-pro-type-union-access): as POSIX declares it
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &handlers_before[i]);
    // What `nohup` ignores stays ignored.
    if (handlers_before[i].sa_handler == SIG_IGN)  // NOLINT(cppcoreguidelines-pro-type-union-access)
      ::sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &handlers_before[i], nullptr);
}

int Interruption::signal() { return came; }

Result<void> Interruption::check() {
  if (came == 0) return {};
  return Error{Errc::Conflict, say("interrupted by signal {}", static_cast<int>(came)), ""};
}

}  // namespace scankit
