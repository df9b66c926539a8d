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

// What a file that --for names, and that is no snapshot, says of a machine: its GPUs and driver. `name` is
// what messages call it. This folder knows snapshots alone; main.cc brings the reader of specs.
using MachineReader = std::function<Result<Snapshot>(const std::string& text, const std::string& name)>;

// scankit build | fix | restore. `exit_status` is set when a command of these runs.
void add_builder_commands(CLI::App& app, int& exit_status, const MachineReader& read_machine = {});

}  // namespace scankit
