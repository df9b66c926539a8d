#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# module_file_test.sh MODULE OBJECT...: what the universal module's file must and must not need, and that
# the objects of the instruction sets share nothing. binutils come with the compiler.
set -euo pipefail
module=$1
shift
status=0
fail() {
  echo "FAILED: $*"
  status=1
}

name=$(basename "$module" .abi3.so)
exports=$(nm -D --defined-only "$module" | awk '{print $3}')
[ "$exports" = "PyInit_$name" ] || fail "exports: $exports"

newest=$(nm -D --undefined-only "$module" | sed -n 's/.*@GLIBC_//p' | sort -V | tail -n 1)
highest=$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)
if [ -z "$newest" ] || [ "$highest" != 2.17 ]; then fail "needs GLIBC_$newest, allowed is 2.17"; fi
others=$(nm -D --undefined-only "$module" | grep '@' | grep -v '@GLIBC_' || true)
[ -z "$others" ] || fail "versions of other libraries: $others"

# Unversioned names must be Python's; weak ones may be missing.
foreign=$(nm -D --undefined-only "$module" | grep -v '@' | awk '$1 == "U" && $2 !~ /^_?Py/ {print $2}')
[ -z "$foreign" ] || fail "nobody defines: $foreign"

# abi3audit counts weak ones as needed, and an installer may believe it.
later=$(nm -D --undefined-only "$module" | awk '$1 != "U" && $2 ~ /^_?Py/ {print $2}')
[ -z "$later" ] || fail "weak names of Python's: $later"

for library in $(readelf -dW "$module" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $library in
    libc.so.6 | libpthread.so.0 | libdl.so.2 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) fail "needs $library" ;;
  esac
done
readelf -dW "$module" | grep -q 'TEXTREL' && fail "has text relocations"
readelf -dW "$module" | grep -Eq 'RPATH|RUNPATH' && fail "has a search path of its own"
readelf -lW "$module" | grep -E 'GNU_STACK.* RWE ' && fail "has an executable stack"
strings -a "$module" | grep -F "$PWD" && fail "holds a path of this build"

# One name each: an inline function with a name outside would be linked once, perhaps compiled for AVX-512.
for object in "$@"; do
  set=$(sed -n 's,.*_\(avx512\|avx2\|portable\)\.dir/.*\.o$,\1,p' <<<"$object")
  [ -n "$set" ] || continue
  names=$(nm -C --defined-only --extern-only "$object" | awk '{$1 = $2 = ""; print}' | xargs)
  [[ "$names" =~ ^scankit::[a-z0-9_]+::${set}_kernels\(\)$ ]] || fail "$(basename "$object") defines $names"
  checked=$((${checked:-0} + 1))
done
[ "${checked:-0}" -eq 3 ] || fail "saw ${checked:-0} objects of instruction sets, expected 3"
[ $status -ne 0 ] || echo "$module: GLIBC_$newest at most, exports $exports"
exit $status
