#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hardening.sh SCANKIT HELPER... ARCHIVE: what the compiler and linker were to do against hostile files is in the programs,
# and in an archive of ours, since a stripped static program names no function.
set -euo pipefail
programs=("${@:1:$#-1}")
archive=${!#}
failed=0
expect() { # NAME TEXT PATTERN
  if grep -qE -- "$3" <<<"$2"; then
    echo "ok: $1"
  else
    echo "FAILED: $1"
    failed=1
  fi
}
without() { # NAME TEXT PATTERN
  if grep -qE -- "$3" <<<"$2"; then
    echo "FAILED: $1"
    failed=1
  else
    echo "ok: $1"
  fi
}
for program in "${programs[@]}"; do
  name=$(basename "$program")
  expect "$name is position independent" "$(readelf -hW "$program")" 'Type: +DYN'
  headers=$(readelf -lW "$program")
  expect "$name has RELRO" "$headers" 'GNU_RELRO'
  without "$name has no segment to write and to run" "$headers" 'LOAD .*RWE|GNU_STACK .*RWE'
  expect "$name binds at its start" "$(readelf -dW "$program")" 'BIND_NOW|FLAGS_1.* NOW'
done
expect "scankit is static" "$(readelf -lW "${programs[0]}" | grep -c INTERP || true)" '^0$'
names=$(nm -uC "$archive" 2>/dev/null)
expect "the stack is protected" "$names" '__stack_chk_fail'
expect "containers check their indexes" "$names" '__glibcxx_assert_fail'
symbols=$(nm -u "${archive%/*}"/../base/libscankit_base.a 2>/dev/null)
expect "libc's functions check their buffers" "$symbols" '__(read|pread|readlink|readlinkat|memcpy|poll|realpath|snprintf)_?(64)?_chk'
exit "$failed"
