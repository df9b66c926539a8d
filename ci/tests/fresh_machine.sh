#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh_machine.sh SUITE [--given SCANKIT] [--only N] [--run root|user]: README's two commands, as README prints them, in a
# minimal Debian of SUITE (bookworm, trixie, sid) that has nothing: no pip, no compiler, no locale. Run `root` has no terminal;
# run `user` is a user with sudo, on a terminal, with the user's own pip and apt configuration. No command may be silent
# for more than 10 seconds. --given: only the first command, with a finished scankit (minutes instead of hours).
# --only N: only README's Nth command. The transcripts are kept in build/fresh/. Needs root and debootstrap.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$source/ci/fixtures.sh"
# shellcheck source=ci/fixture_roots.sh
. "$source/ci/fixture_roots.sh"
suite=$1 given='' only='' runs=''
shift
while [ $# -gt 0 ]; do
  case $1 in
    --given) given=$(readlink -f "$2") && shift ;;
    --only) only=$2 && shift ;;
    --run) runs=$2 && shift ;;
    *) sed -n '3,8s/^# //p' "$0" >&2 && exit 2 ;;
  esac
  shift
done
skip() { echo "SKIPPED: $*" && exit 77; }
[ "$(id -u)" -eq 0 ] || skip "making a root file system needs root"
command -v debootstrap >/dev/null || skip "no debootstrap here"
[ "${FRESH_INSIDE:-}" ] || unshare -m -p -f true 2>/dev/null || skip "no mount namespace can be made here"
# In mount and process namespaces of our own: whatever ends us, nothing stays mounted and nobody runs on.
[ "${FRESH_INSIDE:-}" ] || exec env FRESH_INSIDE=1 unshare -m --propagation private -p -f --mount-proc --kill-child bash "$0" "$suite" \
  ${given:+--given "$given"} ${only:+--only "$only"} ${runs:+--run "$runs"}

base=$(fx_bare_root "$suite") || skip "debootstrap could not make a $suite (no network?)"
run=$(mktemp -d "${TMPDIR:-/var/tmp}/scankit-fresh-$suite.XXXXXX")
kept=$source/build/fresh
trap 'exit 1' TERM INT
mkdir -p "$kept"
# A bind mount is on the same file system: nothing is removed while one is left below.
unmounted() { ! grep -qF " $run/" /proc/self/mountinfo; }
cleanup() {
  local code=$? mount
  set +e
  while read -r mount; do umount -l "$mount"; done < <(awk -v run="$run/" 'index($5, run) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
  if unmounted; then rm -rf --one-file-system "$run"; fi
  exit "$code"
}
trap cleanup EXIT

# Where this machine's CUDA toolkit serves torch, its cached wheels are without CUDA's libraries: the toolkit is lent too.
lent=()
lend_toolkit() {
  fx_toolkit_serves_torch || return 0
  local folder
  while read -r folder; do
    mkdir -p "$run$folder" && mount --bind "$folder" "$run$folder" && mount -o remount,ro,bind "$run$folder"
    lent+=("$run$folder")
    echo "$folder" >>"$run/etc/ld.so.conf.d/lent.conf"
  done < <(fx_toolkit_folders)
  chroot "$run" /sbin/ldconfig
}
lent_back() { [ ${#lent[@]} -eq 0 ] || umount "${lent[@]}" 2>/dev/null || true; }

# Downloads are kept between runs (not the environments), and begin with what this machine has: the same files, no copies.
# A run of the whole thing begins with nothing, except for the wheels that a --given run may share.
share_downloads() { # HOME
  local own=$SCANKIT_CACHE/roots/downloads-$suite into=$run$1/.cache/scankit-dev
  mkdir -p "$own/wheels" "$own/headers" "$into"
  rm -rf "$own/envs"
  if [ "$suite" = bookworm ]; then
    cp -aln "$SCANKIT_CACHE/wheels/." "$own/wheels/" 2>/dev/null || true
    cp -aln "$SCANKIT_CACHE/headers/." "$own/headers/" 2>/dev/null || true
  fi
  mount --bind "$own" "$into"
}

# Nothing else of this machine's environment gets in. HOME decides about the rest.
mapfile -t outside < <(fx_outside)

new_root() {
  unmounted || { echo "FAILED: something is still mounted below $run" && exit 1; }
  find "$run" -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +
  cp -a --reflink=auto "$base/." "$run/"
  fx_lend_mirrors "$run"
  mount -t proc proc "$run/proc"
  mount --rbind /dev "$run/dev"
  [ -e "$run/usr/bin/gcc" ] || [ -e "$run/usr/bin/pip" ] && { echo "FAILED: the root is not bare" && exit 1; }
  return 0
}
# inside WHO COMMAND: a shell line in the clone, with an empty environment.
inside() {
  local home=/root as=()
  if [ "$1" = user ]; then home=/home/dev as=(setpriv --reuid=1000 --regid=1000 --init-groups); fi
  chroot "$run" "${as[@]}" /usr/bin/env -i HOME=$home PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${tty:+TERM=xterm} "${outside[@]}" /bin/bash -c "cd $home/scankit && $2"
}
export -f inside
make_user() { # with sudo without a password, and configuration that trips careless scripts
  chroot "$run" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${outside[@]}" bash -c '
    { apt-get -q update && apt-get -q install -y --no-install-recommends sudo; } >/tmp/sudo.log 2>&1 || { tail -n 5 /tmp/sudo.log; exit 1; }
    useradd -m -u 1000 -s /bin/bash dev && echo "dev ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/dev'
  printf '[global]\nquiet = 2\nrequire-virtualenv = true\n[install]\nuser = true\n' >"$run/home/dev/.pip.conf"
  mkdir -p "$run/home/dev/.config/pip" && mv "$run/home/dev/.pip.conf" "$run/home/dev/.config/pip/pip.conf"
  # A mirror of somebody else's that does not answer, as many machines have one.
  echo 'deb [trusted=yes] http://mirror.invalid/nothing ./' >"$run/etc/apt/sources.list.d/third-party.list"
  echo 'APT::Install-Recommends "true"; Dpkg::Progress-Fancy "true";' >"$run/etc/apt/apt.conf.d/99own"
}

# README's commands, as they stand there: the first indented block.
mapfile -t commands < <(sed -n '/^    bash ci\//,/^$/p' "$source/README.md" | sed -n '/^    bash ci\//{s/^    //;p};/^$/q')
[ ${#commands[@]} -eq 2 ] || { echo "FAILED: README has ${#commands[@]} commands where two were expected" && exit 1; }
if [ -n "$given" ]; then
  commands=("${commands[0]%%#*} --scankit /scankit")
elif [ -n "$only" ]; then
  commands=("${commands[only - 1]}")
fi

failures=0
for who in ${runs:-${given:+root} ${given:-root user}}; do
  [ "$who" != "$given" ] || continue
  new_root
  home=/root tty=''
  if [ "$who" = user ]; then home=/home/dev tty=--tty && make_user; fi
  git -c safe.directory='*' clone -q --no-hardlinks "$source" "$run$home/scankit"
  if [ -n "$given" ]; then
    cp "$given" "$run/scankit"
    lend_toolkit && share_downloads "$home"
  fi
  [ "$who" != user ] || chown -R 1000:1000 "$run/home/dev"
  for command in "${commands[@]}"; do
    [ "$who" = root ] || [ "$only" ] || [[ $command = *quickstart* ]] || continue # the test suite once, unless asked for
    log=$kept/$suite-$who-$(sed -E 's|.*ci/([a-z]+)\.sh.*|\1|' <<<"$command").log
    printf '\n%s, %s%s: %s\n' "$suite" "$who" "${tty:+, terminal}" "$command"
    export run tty suite
    limit=10
    [[ $command = *quickstart* ]] || limit=100000 # CTest tells of a test when it ends
    code=0
    python3 "$here/silence.py" $limit "$log" $tty bash -c "$(declare -p outside); inside $who '$command'" || code=$?
    tr '\r' '\n' <"$log" | grep -E '^== |passed, |quickstart: ' | tail -n 15 || true
    if [ $code -ne 0 ]; then
      echo "FAILED: status $code; the last lines of $log:"
      tail -n 25 "$log"
      failures=$((failures + 1))
    fi
  done
  lent_back && umount -R "$run/proc" "$run/dev" && { umount "$run$home/.cache/scankit-dev" 2>/dev/null || true; }
done
[ $failures -eq 0 ] || { echo "$failures failed" && exit 1; }
echo "passed: transcripts in ${kept#"$source"/}"
