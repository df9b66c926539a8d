// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "builder/installer/installer.h"
#include "doctor/base/result.h"

namespace scankit {

// Runs the user's installer where they can see it: its output goes to standard error as it comes, and Ctrl-C
// reaches it. It dies with us, with all that it started (keeper.h), and until then they hold the lock:
// whoever comes next waits for their end. Errc::ToolFailed where it did not end well.
Result<void> run_installer(const InstallerCommand& command, int lock);

}  // namespace scankit
