#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# emulated_test.sh CPU LEVEL CHECK...: the checks on an emulated processor that has no more than LEVEL's instructions: any
# other one ends them with SIGILL. 77 (CTest: skipped) without the emulator.
set -euo pipefail
emulator=$(command -v qemu-x86_64 || command -v qemu-x86_64-static) || {
  echo "SKIPPED: no qemu-x86_64 here (Debian: qemu-user)"
  exit 77
}
unset SCANKIT_CPU_ISA
# The emulator lists what it cannot emulate of that processor: nothing that the kernels ask for.
cpu=$1 level=$2
shift 2
for check in "$@"; do
  "$emulator" -cpu "$cpu" "$check" "$level" 2> >(grep -v "TCG doesn't support requested feature" >&2)
done
