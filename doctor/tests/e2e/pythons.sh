#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pythons.sh SCANKIT WORK: for every CPython on this machine, bare and as a venv, what `scankit snapshot` reads from files
# is what the interpreter says of itself: version, ABI tag, suffixes, prefix and sys.path, with .pth lines and a user site.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=doctor/tests/e2e/expect.sh
. "$here/expect.sh"
scankit=$1 work=$2/pythons
rm -rf "$work" && mkdir -p "$work/home" "$work/by-pth" "$work/by-user-pth"
work=$(cd "$work" && pwd -P)
cd "$work"

truth() { # PYTHON: the same fields, from the interpreter itself
  HOME=$work/home "$1" - <<'PY'
import json, os, platform, site, sys, sysconfig
try:
    import importlib.machinery
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
except ImportError:
    suffixes = []
path = []
for entry in sys.path[1:]:
    entry = os.path.abspath(entry)
    if os.path.exists(entry) and os.path.realpath(entry) not in path:
        path.append(os.path.realpath(entry))
print(json.dumps({
    "version": platform.python_version(),
    "soabi": sysconfig.get_config_var("SOABI"),
    "extension_suffixes": suffixes,
    "prefix": os.path.realpath(sys.prefix),
    "sys_path": path,
}))
PY
}

read_by_scankit() { # PYTHON
  HOME=$work/home "$scankit" snapshot --python "$1" >snapshot.json 2>snapshot.err ||
    expect_fail "snapshot of $1: $(cat snapshot.err)"
  # realpath, not the text: a venv's lib64 is a link, and Pythons differ in when they resolve it.
  jq -r '.python.value.sys_path[] | select(.exists and .origin != "cwd") | .path' snapshot.json |
    while read -r entry; do realpath "$entry"; done | awk '!seen[$0]++' | jq -R . | jq -s . >path.json
  jq --slurpfile path path.json --arg prefix "$(realpath "$(jq -r .python.value.prefix snapshot.json)")" \
    '.python.value | {version, soabi, extension_suffixes, prefix: $prefix, sys_path: $path[0]}' snapshot.json
}

compared=0
compare() { # NAME PYTHON
  truth "$2" | jq -S . >"$1.truth.json"
  read_by_scankit "$2" | jq -S . >"$1.scankit.json"
  diff "$1.truth.json" "$1.scankit.json" >"$1.diff" || { cat "$1.diff" && expect_fail "$1 ($2): the files say otherwise"; }
  compared=$((compared + 1))
  echo "$1: $(jq -r .version "$1.truth.json"), $(jq '.sys_path | length' "$1.truth.json") folders"
}

for python in /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
  [ -x "$python" ] || continue
  minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || continue
  case $minor in 3.[0-7]) continue ;; esac
  name=$minor-$(echo "$python" | cksum | cut -c1-4)
  user_site=$work/home/.local/lib/python$minor/site-packages
  mkdir -p "$user_site"
  printf '# comment\n%s\n\n/no/such/folder\n' "$work/by-user-pth" >"$user_site/extra.pth"
  compare "$name-bare" "$python"
  "$python" -m venv --without-pip "$name-venv" 2>/dev/null || continue
  printf '%s\nimport sys\n' "$work/by-pth" >"$("$name-venv/bin/python" -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')/extra.pth"
  compare "$name-venv" "$work/$name-venv/bin/python"
  "$python" -m venv --without-pip --system-site-packages "$name-system-site"
  compare "$name-system-site" "$work/$name-system-site/bin/python"
done
[ $compared -gt 0 ] || { echo "SKIP: no CPython here"; exit 77; }
echo "ok: $compared Pythons"
