// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/signalfd.h>
#include <sys/types.h>

#include <csignal>

#include "doctor/base/files.h"

namespace scankit {

// The signals that somebody may send to the command by sending them to us.
const sigset_t& forwarded_signals();

// Whether a signal that somebody sent to us was sent to our whole process group, which the command is a
// member of. timeout(1), Slurm and container runtimes do that: the command has had it, and forwarding it
// would make two of one. A member of the group that only reports what it receives tells the cases apart.
class GroupWitness {
 public:
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;
  bool received(int number);

 private:
  pid_t pid_ = -1;
  Descriptor reports_;
};

// Blocks what the event loop hears: the forwarded signals, SIGCHLD and SIGWINCH, which a descriptor gives
// out; and SIGPIPE, since a lost reader is an error of write(2) here. ^Z is not among them: it stops us
// together with the command.
struct HeardSignals {
  sigset_t before{};  // the mask for the command
  Descriptor descriptor;
};
HeardSignals hear_signals();
void stop_hearing(const HeardSignals& heard);

}  // namespace scankit
