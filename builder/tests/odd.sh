# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that need a compiler which is odd in one way (testdata/odd_nvrtc.c), after checks.sh and with
# $scankit, $odd_library and $real set.
# shellcheck disable=SC2154

# The first NVRTC of this machine, or nothing.
real_nvrtc() { "$scankit" build --list-toolchains --cache-dir "$work/listed" 2>/dev/null | sed -n 's/^NVRTC [^:]*: //p' | head -n 1; }

# odd_nvrtc HOW: prints the path of an NVRTC that is odd so.
odd_nvrtc() {
  mkdir -p "$work/odd-$1"
  cp "$odd_library" "$work/odd-$1/libnvrtc.so.13"
  printf '%s\n%s\n' "$real" "$1" >"$work/odd-$1/odd"
  echo "$work/odd-$1/libnvrtc.so.13"
}
