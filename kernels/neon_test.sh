#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# neon_test.sh WORK: the CPU kernels compiled for aarch64, with the flags of modules.cmake, and right on an emulated one that
# has nothing beyond ARMv8.0. 77 (CTest: skipped) without the cross compiler or the emulator.
set -euo pipefail
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v aarch64-linux-gnu-g++ >/dev/null || skip "no aarch64-linux-gnu-g++ here (Debian: g++-aarch64-linux-gnu)"
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "no qemu-aarch64 here (Debian: qemu-user)"
mkdir -p "$1"
work=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
unset SCANKIT_CPU_ISA
launcher=()
! command -v ccache >/dev/null || launcher=(ccache)
compile() { # OBJECT SOURCE FLAG...
  local object=$work/$1 source=$2
  shift 2
  "${launcher[@]}" aarch64-linux-gnu-g++ -std=c++20 -I. -c "$source" -o "$object" "$@"
}
kernel=(-O3 -g0 -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-math-errno -fno-trapping-math -fwrapv -DNDEBUG)
compile cpu.o kernels/common/cpu.cc "${kernel[@]}"
compile oracle.o validate/judge/oracle.cc -O2
for test in selective_scan:scan causal_conv1d:conv; do
  folder=${test%:*} name=${test#*:}
  compile "$name.o" "kernels/$folder/cpu/$name.cc" "${kernel[@]}"
  compile "${name}_set.o" "kernels/$folder/cpu/instruction_set.cc" "${kernel[@]}" -DSCANKIT_SET=portable -DSCANKIT_LANES=4
  compile "${name}_test.o" "kernels/$folder/cpu/levels_test.cc" -O1
  aarch64-linux-gnu-g++ -static -o "$work/$name" "$work/${name}_test.o" "$work/$name.o" "$work/${name}_set.o" "$work/cpu.o" "$work/oracle.o"
  "$emulator" -cpu cortex-a53 "$work/$name" neon
done
