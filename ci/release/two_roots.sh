#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# two_roots.sh WORK [ARCH]...: the files of a release of the last commit, made here and in a bare root of this machine's
# release of Debian, with the packages of the mirror, no compiler cache and another path, host name, umask, zone and
# language: the same bytes. ARCH: x86_64, aarch64 [default: both]. Needs root. Half an hour on two cores.
set -euo pipefail
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
why=$(fx_inside_runs) || skip "$why"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
base=$(fx_bare_root "$suite") || skip "debootstrap could not make a $suite"
work=$(empty_folder "$1")
shift
archs=("$@")
[ $# -gt 0 ] || archs=(x86_64 aarch64)
trap 'rm -rf "$work/root" "$work/sources"' EXIT
options=()
for arch in "${archs[@]}"; do options+=(--arch "$arch"); done

# Both from clones: what was changed since the commit is of neither.
git clone -q "$here/../.." "$work/sources"
cp -a --reflink=auto "$base" "$work/root"
fx_lend_mirrors "$work/root"
mkdir -p "$work/root/srv/somewhere else"
git clone -q --no-hardlinks "$here/../.." "$work/root/srv/somewhere else/scankit"

(cd "$work/sources" && bash ci/release/make.sh "${options[@]}" --build "$work/build" --out "$work/one") >"$work/here.txt" 2>&1 ||
  { tail -n 20 "$work/here.txt" && fail "make.sh failed here"; }

begin=$SECONDS
fx_inside "$work/root" /bin/bash -c '
  set -e
  cd "/srv/somewhere else/scankit"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TZ=Asia/Tokyo
  bash ci/install-deps.sh --quickstart
  apt-get -q install -y --no-install-recommends git g++-aarch64-linux-gnu qemu-user-static
  git config --global --add safe.directory "*"
  umask 077
  time bash ci/release/make.sh "$@" --out /out' - "${options[@]}" >"$work/there.txt" 2>&1 ||
  { tail -n 20 "$work/there.txt" && fail "make.sh failed in the bare $suite"; }
cp -a "$work/root/out" "$work/another"
diff "$work/one/SHA256SUMS" "$work/another/SHA256SUMS" || fail "the files above differ between the two roots: $work/one and $work/another"
diff -r "$work/one" "$work/another" || fail "the two roots made different files"
printf '%d files, the same bytes in both roots (%s), %d s in the bare one:\n' "$(find "$work/one" -type f | wc -l)" "${archs[*]}" $((SECONDS - begin))
cat "$work/one/SHA256SUMS"
