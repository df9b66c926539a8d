#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scankit build --check-reproducible:  reproducible_end_to_end.sh SCANKIT ODD_NVRTC
set -euo pipefail
# shellcheck source=builder/tests/odd.sh
. "$(dirname "$0")/odd.sh"
twice() { status_is "$1" "$scankit" build --check-reproducible --module causal_conv1d_cuda "${@:2}"; }
module=causal_conv1d_cuda.abi3.so

if setarch -R true 2>/dev/null; then
  check "two builds are the same" twice 0 --toolchain "$real" --arch sm_90,compute_90 --out "$work/good/"
  check "it says so" says "reproducible: two builds gave the same"
  check "and what was varied" says "the umask"
  check "the module is there" status_is 0 "$scankit" build --show-manifest "$work/good/$module"
  check "and its manifest beside it" cmp "$work/out" "$work/good/$module.json"
  # Its output depends on addresses; with a library more in the process the helper still fixes them.
  check "also with another process layout" twice 0 --toolchain "$(odd_nvrtc plain)" --arch sm_90 --out "$work/plain/"
else
  echo "note: addresses cannot be fixed here: not checked that builds are the same"
fi

check "a compiler that leaks the time is found out" twice 1 --toolchain "$(odd_nvrtc time)" --arch sm_90,compute_90 --out "$work/bad/"
check "the image is named, with section and symbol" \
  grep -q 'image conv_f32 for sm_90: section \.nv\.global\.init differs .*, in symbol leaked_time' "$work/out"
check "and of PTX the line" grep -q 'image conv_f32 for compute_90: line [0-9]* is ".*leaked_time' "$work/out"
check "nothing is written" test ! -e "$work/bad"
kept=$(sed -n 's/^both are kept in //p' "$work/out")
check "both builds are kept" test -s "$kept/first.so" -a -s "$kept/second.so"
check "nothing else is left behind" test "$(find "$work/tmp" -mindepth 1 -maxdepth 1 | wc -l)" = 1

# Where a sandbox forbids to fix addresses, the helper goes on; then a difference says that this may be why.
check "a compiler that fails is a failed build" twice 5 --toolchain "$(odd_nvrtc crash)" --arch sm_90
check "with its own message" says "the compiler crashed (SIGSEGV)"
check "options that make no sense are refused" twice 2 --arch hopper
end
