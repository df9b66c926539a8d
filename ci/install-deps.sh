#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of the packages that ci/cmake/dependencies.cmake names: to build scankit ("# apt:"), for the story
# of the quickstart ("# apt-demo:") and for the tests ("# apt-test:"). --quickstart: without those of the tests; --demo: the
# story's alone; --browser: also the "# apt-browser:" ones, which only the test of the HTML report needs; --slurm: also the
# "# apt-slurm:" ones. Nothing to do: no network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/progress.sh
. "$root/ci/progress.sh"

say() { printf 'install-deps: %s\n' "$*" >&2; }
kinds='apt\|apt-demo\|apt-test'
for option in "$@"; do
  case $option in
    --quickstart) kinds='apt\|apt-demo' ;;
    --demo) kinds=apt-demo ;;
    --browser | --slurm) kinds="$kinds\|apt-${option#--}" ;;
    *) echo "usage: ci/install-deps.sh [--quickstart | --demo] [--browser] [--slurm]" >&2 && exit 2 ;;
  esac
done
packages_of() { sed -n "s/^# \($1\): *//p" "$root/ci/cmake/dependencies.cmake" | sed 's/(.*//' | tr -s ' ' '\n' | grep . | sort -u; }
if ! command -v dpkg-query >/dev/null; then
  say "this system has no dpkg; install the equivalents of: $(packages_of "$kinds" | tr '\n' ' ')"
  exit 0
fi
missing=()
for package in $(packages_of "$kinds"); do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "install-deps: all packages are installed"
  exit 0
fi

log=$(mktemp -d) && trap 'rm -rf "$log"' EXIT
by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # Without a terminal sudo cannot ask for a password. With one it asks once, before anything is hidden in a log.
  if ! { command -v sudo && { sudo -n true 2>/dev/null || { [ -t 0 ] && [ -t 2 ] && sudo -v; }; }; } >/dev/null; then
    say "${#missing[@]} packages are missing, and you are neither root nor able to use sudo here. Run this as root, then try again:"
    printf '  %s\n' "$by_hand" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

# apt COMMAND...: APT::Status-Fd=1 adds its percentages to the log. It waits for another apt up to five minutes, and says so.
apt() {
  logged "$log/$1" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q \
    -o APT::Status-Fd=1 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 "$@"
}
# All is read to its end (no `head`): under pipefail a closed pipe would end this script before it says what to do.
complaints() { grep -hE '^(E:|W:|Err:|dpkg: error)|^ +(Could not|Temporary failure|Unable to|404)' "$@" | grep -v 'dlstatus\|pmstatus' | sort -u | sed -n "1,${lines:-12}p" || true; }

# What apt said, and what to do about it.
refuse() {
  say "apt-get could not install: ${missing[*]}. It said:"
  complaints "$log"/* | sed 's/^/  /' >&2
  if grep -qE 'Read-only file system|Permission denied' "$log"/*; then
    say "apt cannot write its own directories. In a container whose system is read-only, use an image that has these packages."
  elif grep -qE 'Could not (resolve|connect)|Temporary failure|Failed to fetch|Network is unreachable|Unable to connect|Connection (failed|timed out)' "$log"/*; then
    say "the package mirror cannot be reached. Check the network, the proxy (http_proxy, /etc/apt/apt.conf.d) and /etc/apt/sources.list*, then try again."
  elif grep -qE 'Unable to locate package|has no installation candidate' "$log"/*; then
    say "apt's sources do not list these packages. Debian 12 or newer with its component 'main' is needed: see /etc/apt/sources.list*."
  elif grep -qE 'Could not get lock' "$log"/*; then
    say "another apt or dpkg is running. Wait for it to finish, then try again."
  fi
  say "to see all of its output, run as root: $by_hand"
  exit 1
}

echo "install-deps: installing ${missing[*]}"
# A third-party source that does not answer must not stop the packages of the distribution itself.
live "install-deps: reading the package lists" apt_detail "$log/update" apt update || say "apt-get update failed, trying with the package lists at hand"
lines=3 complaints "$log/update" | sed 's/^/install-deps:   /' >&2

# A release may lack what only a test needs: that test is skipped there.
available=()
known=$(LC_ALL=C apt-cache policy "${missing[@]}" 2>/dev/null | awk '/^[^ ].*:$/ { name = substr($1, 1, length($1) - 1) } /^ +Candidate:/ && $2 != "(none)" { print name }')
needed=$(packages_of 'apt\|apt-demo')
for package in "${missing[@]}"; do
  if grep -qxF -e "$package" <<<"$needed" || grep -qxF -e "$package" <<<"$known"; then
    available+=("$package")
  else
    say "this release has no package $package; the tests that need it are skipped or fail"
  fi
done
[ ${#available[@]} -gt 0 ] || refuse
live "install-deps: installing" apt_detail "$log/install" apt install -y --no-install-recommends "${available[@]}" || refuse
sed -n 's/^Setting up \([^ ]*\) .*/\1/p' "$log/install" | wc -l | sed 's/$/ packages installed/; s/^/install-deps: /'
