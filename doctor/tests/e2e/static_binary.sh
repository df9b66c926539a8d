#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# static_binary.sh SCANKIT WORK: scankit is one static executable and runs in a root file system of another release whose
# name services a static glibc program dies of.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$here/expect.sh"
scankit=$1 work=$2/static_binary
rm -rf "$work" && mkdir -p "$work"

if readelf -lW "$scankit" | grep -q INTERP; then expect_fail "$scankit asks for an interpreter"; fi
if readelf -dW "$scankit" | grep -q NEEDED; then expect_fail "$scankit needs shared libraries"; fi

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "SKIP: the foreign root needs root and debootstrap"
  exit 77
fi
root=$(fx_foreign_root)
inside=$(mktemp -d "$root/tmp/scankit.XXXXXX")
trap 'rm -rf "$inside"' EXIT
cp "$scankit" "$inside/scankit"

# The trap is armed: a static program that asks for a user does die there.
printf '#include <pwd.h>\nint main(void) { getpwuid(12345); return 0; }\n' >"$work/asks.c"
gcc -static -w "$work/asks.c" -o "$inside/asks" 2>/dev/null
if chroot "$root" "/tmp/${inside##*/}/asks" 2>/dev/null; then
  expect_fail "the foreign root does not trip a static program: the test proves nothing"
fi

run() { chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin "/tmp/${inside##*/}/scankit" "$@"; }
run --version
run >"$work/bare.txt" || expect_fail "bare scankit exits with $?"
run explain torch_version_mismatch >"$work/explain.txt" || expect_fail "scankit explain exits with $?"
run doctor --no-import --json >"$work/doctor.json" 2>"$work/doctor.err" && code=0 || code=$?
cat "$work/doctor.err"
# There is no Python in that root: a usage error says so. Dying of a signal is 128 and more.
[ "$code" -lt 5 ] && [ "$code" -ne 3 ] || expect_fail "scankit doctor exits with $code in the foreign root"
run snapshot >"$work/snapshot.json" 2>"$work/snapshot.err" && code=0 || code=$?
[ "$code" -lt 5 ] && [ "$code" -ne 3 ] || expect_fail "scankit snapshot exits with $code in the foreign root"
echo "ok: static binary"
