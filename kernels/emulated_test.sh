#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# emulated_test.sh CPU LEVEL CHECK: the check on an emulated processor that has no more than LEVEL's instructions: any
# other one ends it with SIGILL. 77 (CTest: skipped) without the emulator.
set -euo pipefail
emulator=$(command -v qemu-x86_64 || command -v qemu-x86_64-static) || {
  echo "SKIPPED: no qemu-x86_64 here (Debian: qemu-user)"
  exit 77
}
unset SCANKIT_CPU_ISA
# The emulator lists what it cannot emulate of that processor: nothing that the kernels ask for.
exec "$emulator" -cpu "$1" "$3" "$2" 2> >(grep -v "TCG doesn't support requested feature" >&2)
