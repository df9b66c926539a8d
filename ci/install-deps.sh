#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of the "# apt:" packages that ci/cmake/dependencies.cmake names; with --browser also of the
# "# apt-browser:" ones, which only the test of the HTML report needs; with --slurm of the "# apt-slurm:" ones. Nothing to
# do: no network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

kinds='apt'
for option in "$@"; do
  case $option in
    --browser | --slurm) kinds="$kinds\|apt-${option#--}" ;;
    *) echo "usage: ci/install-deps.sh [--browser] [--slurm]" >&2 && exit 2 ;;
  esac
done
listed=$(sed -n "s/^# \($kinds\): *//p" "$root/ci/cmake/dependencies.cmake" | sed 's/(.*//' | tr -s ' ' '\n' | sort -u)
if ! command -v dpkg-query >/dev/null; then
  echo "install-deps: this system has no dpkg; install the equivalents of:" $listed >&2
  exit 0
fi
missing=()
for package in $listed; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "install-deps: all packages are there"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "install-deps: not root and no sudo; run this as root, then try again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
echo "install-deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# A third-party source that does not answer must not stop the packages of the distribution itself.
"${as_root[@]}" apt-get -q update >/dev/null 2>&1 || echo "install-deps: apt-get update reported errors, going on" >&2
"${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}" </dev/null |
  sed -n 's/^Setting up /install-deps:   /p'
