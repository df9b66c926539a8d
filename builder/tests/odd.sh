# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that need a compiler which is odd in one way (testdata/odd_nvrtc.c):  TEST SCANKIT ODD_NVRTC
# Sets $scankit, and $real, the first NVRTC of this machine; gives TMPDIR the folder $work/tmp.
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1 odd_library=$2
mkdir "$work/tmp"
export TMPDIR=$work/tmp

real=$("$scankit" build --list-toolchains --cache-dir "$work/listed" 2>/dev/null | sed -n "s,^NVRTC [^:]*: \(/.*\),\1,p" | head -n 1) || true
[ -n "$real" ] || { echo "SKIPPED: no NVRTC on this machine"; exit 77; }

# odd_nvrtc HOW: prints the path of an NVRTC that is odd so.
odd_nvrtc() {
  mkdir -p "$work/odd-$1"
  cp "$odd_library" "$work/odd-$1/libnvrtc.so.13"
  printf '%s\n%s\n' "$real" "$1" >"$work/odd-$1/odd"
  echo "$work/odd-$1/libnvrtc.so.13"
}
