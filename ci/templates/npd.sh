#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Written by `scankit ci init node-problem-detector`: a custom plugin, which scankit-npd.json names. The detector takes 0 for
# good, 1 for a problem, anything else for unknown, and shows the one line that is printed. By scankit's exit status:
#   0               0: the node is as it should be
#   1, 5, 6, 7      1: it is not
#   2, 3, 4, others 2: nothing is known (a wrong policy, our own failure, no time), or there is nothing to check, since neither
#                   PyTorch nor a compiled extension is installed (SCANKIT_REQUIRE=torch makes that a problem)
# Files are read and nothing of the environment is run (--no-import), whoever starts it.
set -uo pipefail
export LC_ALL=C
scankit=${SCANKIT:-/usr/local/bin/scankit}
python=${SCANKIT_PYTHON:-}
policy=${SCANKIT_POLICY:-/etc/scankit/ci.yaml}
require=${SCANKIT_REQUIRE:-} # modules or packages that the node must have: torch,selective_scan_cuda
budget=${SCANKIT_BUDGET:-20s}

options=(--no-import --budget "$budget")
[ -z "$python" ] || options+=(--python "$python")
[ ! -e "$policy" ] || options+=(--policy "$policy")
[ -z "$require" ] || options+=(--require "$require")
cd / || exit 2
status=0
answer=$("$scankit" ci run "${options[@]}" 2>&1) || status=$?
cause=$(printf '%s\n' "$answer" | sed -n 's/.*failed: .*(\([a-z0-9_]*\))\..*/\1/p' | tail -n 1)

case $status in
  0) echo "scankit: passed" && exit 0 ;;
  1 | 5 | 6 | 7) echo "scankit: ${cause:-status $status}" && exit 1 ;;
  *)
    case $answer in
      *"nothing to check"*) echo "scankit: nothing to check" ;;
      *) echo "scankit: unknown, status $status" ;;
    esac
    exit 2
    ;;
esac
