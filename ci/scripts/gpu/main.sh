#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# main.sh --scankit FILE [--python P] [--keep DIR]                      the main job, below
# main.sh --scankit FILE --against MODULE [OPTION...]                    every figure beside another module: figures.sh
# The main job on a machine with a GPU: a scratch environment on top of P's torch holds a broken module; doctor must name
# the cause, fix must repair it for this GPU, validate must prove it on CPU and GPU, restore must bring the old state
# back. Exit status: the first step's that is not as expected; 77 where torch sees no GPU.
set -uo pipefail
for argument; do
  [ "$argument" != --against ] || exec "$(dirname "$0")/figures.sh" "$@"
done
# shellcheck source=ci/scripts/gpu/begin.sh
. "$(dirname "$0")/begin.sh" --keep "$@"
keep=$option
work=${keep:-$(mktemp -d)}
mkdir -p "$work"
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
env=$work/env
rm -rf "$env"
"$python" -m venv --without-pip "$env" || exit 3
site=$(echo "$env"/lib/python*/site-packages)
"$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/torch-env.pth"
tag=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
head -c 40000 "$(readlink -f "$("$python" -c 'import sys; print(sys.executable)')")" \
  >"$site/selective_scan_cuda$tag"  # an ELF file cut off, as a broken download leaves it

# expect NAME EXPECTED COMMAND...: as step, for statuses that are no failure
expect() {
  local name=$1 expected=$2; shift 2
  echo; echo "== $name: $*"
  local begin end rc
  begin=$(date +%s.%N); "$@"; rc=$?; end=$(date +%s.%N)
  awk -v n="$name" -v s="$begin" -v e="$end" -v rc=$rc 'BEGIN { printf "== %s: exit %d, %.1f s\n", n, rc, e - s }'
  [ $rc = "$expected" ] || { echo "main.sh: $name ended with $rc, expected $expected"; exit 1; }
}
P=$env/bin/python
expect doctor 1 "$scankit" doctor --python "$P"
expect fix 0 "$scankit" fix --python "$P" --yes --cache-dir "$work/cache"
expect doctor-again 0 "$scankit" doctor --python "$P"
expect import 0 "$P" -c 'import torch, selective_scan_cuda as m; m.warm(); print(m.__file__, m.scankit_info())'
expect validate-quick 0 "$scankit" validate --python "$P" --quick --device all
expect validate-full 0 "$scankit" validate --python "$P" --full --device cuda
expect restore 0 "$scankit" restore --python "$P"
expect doctor-restored 1 "$scankit" doctor --python "$P" --no-import
echo "1 passed, 0 failed"
