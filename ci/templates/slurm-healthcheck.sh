#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Written by `scankit ci init slurm-healthcheck`, for slurm.conf:
#   HealthCheckProgram=/usr/local/sbin/scankit-healthcheck.sh
#   HealthCheckInterval=300
# Slurm starts it as root, kills it after 60 s, and looks at nothing that it prints or returns: a bad node is drained here.
# Files are read and nothing of the environment is run (--no-import). By scankit's exit status:
#   0               the node is as it should be
#   1, 5, 6, 7      it is not: drained, with the cause as the reason
#   2, 3, 4, others nothing is known about the node (a wrong policy, our own failure, no time, nothing to check since neither
#                   PyTorch nor a compiled extension is installed): said in the log, not drained
# SCANKIT_REQUIRE=torch drains a node on which PyTorch is not installed.
set -uo pipefail
export LC_ALL=C
scankit=${SCANKIT:-/usr/local/bin/scankit}
python=${SCANKIT_PYTHON:-}                      # the Python that jobs use; empty: the one on PATH
policy=${SCANKIT_POLICY:-/etc/scankit/ci.yaml}  # which causes drain a node; every error where it is not there
require=${SCANKIT_REQUIRE:-}                    # modules or packages that every node must have: torch,selective_scan_cuda
textfile=${SCANKIT_TEXTFILE:-}                  # a .prom file for node_exporter's textfile collector
budget=${SCANKIT_BUDGET:-20s}
node=${SLURMD_NODENAME:-$(hostname -s)}

options=(--no-import --budget "$budget")
[ -z "$python" ] || options+=(--python "$python")
[ ! -e "$policy" ] || options+=(--policy "$policy")
[ -z "$require" ] || options+=(--require "$require")
[ -z "$textfile" ] || options+=(--report "prometheus=$textfile")
cd / || exit 0
status=0
answer=$("$scankit" ci run "${options[@]}" 2>&1) || status=$?
cause=$(printf '%s\n' "$answer" | sed -n 's/.*failed: .*(\([a-z0-9_]*\))\..*/\1/p' | tail -n 1)

case $status in
  0) ;;
  1 | 5 | 6 | 7)
    # Who drained it before had a reason, which stays.
    if scontrol --oneliner show node "$node" | grep -qE ' State=[^ ]*(DRAIN|DOWN)'; then exit 0; fi
    scontrol update NodeName="$node" State=DRAIN Reason="scankit: ${cause:-status $status}"
    ;;
  *) logger -t scankit "status $status, the node is left as it is: $(printf '%s\n' "$answer" | grep -v '^$' | tail -n 1)" ;;
esac
exit 0
