#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a build makes of a compiler that crashes, hangs, is killed or talks too much:  compiler_faults.sh SCANKIT ODD_NVRTC
# Real crashes of a real compiler's process; after each, nothing is installed and the cache holds nothing new.
set -euo pipefail
# shellcheck source=builder/tests/odd.sh
. "$(dirname "$0")/odd.sh"

# fails HOW ARCH OPTION...: a build with that compiler fails as a failed build, and leaves nothing behind.
fails() { status_is 5 build_with "$@" && left_nothing; }
build_with() {
  "$scankit" build --module causal_conv1d_cuda --toolchain "$(odd_nvrtc "$1")" --arch "$2" --cache-dir "$work/cache" \
    --out "$work/made/" "${@:3}"
}
left_nothing() {
  local images
  images=$(find "$work/cache/last" -type f -exec grep -l '^unit: ' {} + 2>/dev/null | wc -l)
  [ "$images" = 0 ] || { echo "the cache holds $images images"; return 1; }
  [ -z "$(ls -A "$work/tmp")" ] || { echo "left behind: $(ls -A "$work/tmp")"; return 1; }
  [ ! -e "$work/made/causal_conv1d_cuda.abi3.so" ] || { echo "a module was written"; return 1; }
}
gone() {
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
bounded() { (ulimit -v "$1" && shift && "$@"); }
# Prints a new group below ours with 300 MB and no swap.
limited_group() {
  local group root=/sys/fs/cgroup
  if group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup) && [ -n "$group" ]; then
    group=$root/memory${group%/}/scankit-test-$$
    mkdir "$group" 2>/dev/null || return 1
    echo 300000000 >"$group/memory.limit_in_bytes" || return 1
  else
    group=$root$(sed -n 's/^0:://p' /proc/self/cgroup)/scankit-test-$$
    mkdir "$group" 2>/dev/null || return 1
    { echo 300000000 >"$group/memory.max" && echo 0 >"$group/memory.swap.max"; } 2>/dev/null || { rmdir "$group"; return 1; }
  fi
  echo "$group"
}
in_group() { (echo "$BASHPID" >"$1/cgroup.procs" && shift && "$@"); }
names() { grep -q "^scankit build: compiling conv_[a-z0-9]* for $1 failed: $2" "$work/err"; }

# Begins a build whose compiler hangs, and waits for that; sets $builder and $compiler.
begin_hanging() {
  rm -f "$work/odd-hang/pid"
  build_with hang compute_90 -j 1 >"$work/out" 2>"$work/err" </dev/null &
  builder=$!
  for _ in $(seq 200); do
    [ -s "$work/odd-hang/pid" ] && break
    sleep 0.05
  done
  compiler=$(cat "$work/odd-hang/pid")
}
# The OOM killer and batch systems end a process by SIGKILL.
killed_compiler() {
  begin_hanging
  kill -KILL "$compiler"
  local status=0
  wait "$builder" || status=$?
  [ "$status" = 5 ] && left_nothing
}
killed_builder() {
  begin_hanging
  local program
  program=$(pgrep -P "$builder" || echo "$builder")
  kill -KILL "$program"
  wait "$builder" || true
  gone "$compiler" && ls -d "$work"/tmp/scankit-build.?????? >/dev/null
}
next_start() {
  mkdir "$work/tmp/scankit-build.theirs" # as a user may name one
  status_is 0 "$scankit" build --module causal_conv1d_cuda --arch compute_75 --toolchain "$real" --cache-dir "$work/next" --out "$work/next/"
  rmdir "$work/tmp/scankit-build.theirs" && left_nothing
}

check "a crash is a failed build" fails crash compute_90
check "named as a crash, with unit and target" names compute_90 'the compiler crashed (SIGSEGV)'
check "with the next step" says "scankit build --list-toolchains"

check "a hang ends after --timeout" fails hang compute_90 --timeout 2
check "named as one" names compute_90 'the compiler exceeded its time limit of 2 seconds and was killed'
check "with the next step" says "allow more with --timeout SECONDS"
check "no compiler is left running" gone "$(cat "$work/odd-hang/pid")"

check "a builder that is killed takes its compiler with it" killed_builder
check "and the next one removes its folder, and no other" next_start

check "a compiler that is killed is a failed build" killed_compiler
check "named as killed" names compute_90 'the compiler was killed (SIGKILL), most likely for lack of memory'
check "with the next step" says "one image at a time with -j 1"

check "an address limit is a failed build" bounded 400000 fails eat compute_90 -j 1
check "named as want of memory" names compute_90 'the compiler ran out of memory'

# The real killer, where this user may make a control group (root and cgroup v1, or v2 with memory delegated to it).
if limited=$(limited_group); then
  check "the real OOM killer is a failed build" in_group "$limited" fails eat compute_90 -j 1
  check "named as the limit" names compute_90 'the kernel killed the compiler: the memory limit of this container or job was reached'
  rmdir "$limited"
else
  echo "note: no control group can be made here: the OOM killer is not tried"
fi

check "a long log is a failed build" fails noise compute_90
check "with the error first" names compute_90 'causal_conv1d.cu([0-9]*): error: .*this_name_is_nowhere'
check "and few lines" test "$(wc -l <"$work/err")" -lt 20
check "which says what it left out" says "more lines of the compiler's log left out"

check "no image is a failed build" fails empty sm_90
check "named as such" names sm_90 'NVRTC built no image\|the compiler reported no error'
check "a bad image is one" fails faulty sm_90
check "named as such" names sm_90 'the compiler reported no error but wrote no image'

check "the next build is a good one" status_is 0 "$scankit" build --module causal_conv1d_cuda --arch compute_90 \
  --toolchain "$real" --cache-dir "$work/cache" --out "$work/made/"
check "that took nothing from the broken ones" says "0 of 4 images from the cache"
end
