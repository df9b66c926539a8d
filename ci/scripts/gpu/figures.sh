#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh --scankit FILE [--python P] [--against MODULE] [--conv-against M] [--vmamba-against M] [--keep DIR]
#   [--modules DIR] [--baseline FILE] [--group G]... [--budget S] [--device cpu]
# Every figure of the kernels beside another build of the modules, in one run: the six shapes of the goals, the other kinds,
# memory, the convolution, VMamba's shapes, what else a user would try. Ours are built for the GPU unless --modules names
# them. --keep DIR holds figures.json, the baseline of another day. Exit status: 0; 1 a figure could not be measured; 2 usage;
# 4 the baseline is of another GPU; 6 a figure is more than 5 % worse than in the baseline; 77 where torch sees no GPU.
set -uo pipefail
scankit='' python=python3 keep='' modules='' device=cuda more=()
usage() { echo "figures.sh: $1 (lines 3 and 4 of the script name the options)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || usage "no value for $1"
  case "$1" in
    --scankit) scankit=$(readlink -f "$2") ;;
    --python) python=$2 ;;
    --keep) keep=$2 ;;
    --modules) modules=$(readlink -f "$2") ;;
    --device) device=$2; more+=(--device "$2") ;;
    --against | --conv-against | --vmamba-against | --baseline) more+=("$1" "$(readlink -m "$2")") ;;
    --group | --budget | --seconds) more+=("$1" "$2") ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[ -n "$modules" ] || [ -x "$scankit" ] || usage "--scankit must name the program, or --modules a folder"
if [ "$device" = cuda ]; then
  "$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' ||
    { rc=$?; [ $rc = 77 ] && echo "SKIPPED: torch finds no GPU"; exit $rc; }
fi
work=${keep:-$(mktemp -d)}
mkdir -p "$work" || exit 3
work=$(readlink -f "$work")
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/../../.." || exit 3
if [ -z "$modules" ]; then
  modules=$work/modules
  for module in selective_scan_cuda causal_conv1d_cuda selective_scan_cuda_core selective_scan_cuda_oflex; do
    "$scankit" build --python "$python" --module "$module" --arch native --cache-dir "$work/cache" --out "$modules/" >"$work/build.txt" 2>&1 ||
      { rc=$?; cat "$work/build.txt"; echo "figures.sh: $module was not built"; exit $rc; }
  done
fi
export PYTHONDONTWRITEBYTECODE=1
"$python" ci/figures/main.py --modules "$modules" --out "$work/figures.json" "${more[@]}"
