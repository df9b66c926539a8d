#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_deps.sh: what ci/install-deps.sh says when apt fails for real, in a minimal Debian: no network, a system that cannot
# be written, packages that no source lists, neither root nor sudo. Needs root and debootstrap.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$source/ci/fixtures.sh"
skip() { echo "SKIPPED: $*" && exit 77; }
[ "$(id -u)" -eq 0 ] || skip "making a root file system needs root"
[ "${FRESH_INSIDE:-}" ] || unshare -m -n true 2>/dev/null || skip "no mount or network namespace can be made here"
base=$SCANKIT_CACHE/roots/bare-bookworm
[ -e "$base.ready" ] || skip "no minimal bookworm here yet: ci.fresh_story makes it"
[ "${FRESH_INSIDE:-}" ] || exec env FRESH_INSIDE=1 unshare -m -n --propagation private bash "$0" # -n: no network at all
work=$(mktemp -d "${TMPDIR:-/var/tmp}/scankit-deps.XXXXXX")
trap 'umount -R "$work/root" 2>/dev/null || true; grep -qF " $work/" /proc/self/mountinfo || rm -rf --one-file-system "$work"' EXIT
mkdir "$work/root"
failures=0
check() { # WHAT COMMAND...
  if "${@:2}"; then echo "ok    $1"; else echo "FAILED $1" && sed 's/^/      /' "$work/said" && failures=$((failures + 1)); fi
}
# in_root USER: install-deps.sh --demo in the root, its words in $work/said; fails where it does not end with status 1.
in_root() {
  local code=0
  chroot "$work/root" setpriv --reuid="$1" --regid="$1" --clear-groups /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash /src/ci/install-deps.sh --demo </dev/null >"$work/said" 2>&1 || code=$?
  [ $code -eq 1 ]
}
says() { grep -qE -- "$1" "$work/said"; }

cp -a --reflink=auto "$base/." "$work/root/"
mount --bind "$work/root" "$work/root"
mkdir -p "$work/root/src/ci"
cp -r "$source/ci/install-deps.sh" "$source/ci/progress.sh" "$source/ci/cmake" "$work/root/src/ci/"
mount -t proc proc "$work/root/proc"

check "no network: status 1" in_root 0
check "no network: apt's own words" says '^  (E|W): |^ +(Could not|Temporary|Unable)'
check "no network: what next" says 'the package mirror cannot be reached. Check the network'
check "no network: the line to type" says 'apt-get update && apt-get install -y --no-install-recommends .*python3-venv'
check "a user without sudo: status 1" in_root 65534
check "a user without sudo: why and what next" says 'neither root nor able to use sudo'
mkdir "$work/root/empty" && : >"$work/root/empty/Packages"
echo 'deb [trusted=yes] file:/empty ./' >"$work/root/etc/apt/sources.list"
check "a source without the packages: status 1" in_root 0
check "a source without the packages: which" says "apt's sources do not list these packages"
mount -o remount,ro,bind "$work/root"
mount -t tmpfs none "$work/root/tmp"
check "a read-only system: status 1" in_root 0
check "a read-only system: why" says 'apt cannot write its own directories'
[ $failures -eq 0 ] || { echo "$failures failed" && exit 1; }
