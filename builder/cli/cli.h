// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

namespace CLI {
class App;
}

namespace scankit {

// Reads a --for file that is not a snapshot: the machine's GPUs and driver. `name` is what messages call the
// file. This directory knows snapshots only; main.cc passes the reader of specs.
using MachineReader = std::function<Result<Snapshot>(const std::string& text, const std::string& name)>;

// Adds scankit build, fix and restore. A command that runs sets `exit_status`, which must outlive `app`.
void add_builder_commands(CLI::App& app, int& exit_status, const MachineReader& read_machine = {});

}  // namespace scankit
