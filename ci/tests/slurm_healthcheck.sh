#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm_healthcheck.sh SCANKIT WORK: what `scankit ci init slurm-healthcheck` writes, as the HealthCheckProgram of a real
# Slurm of two nodes: the one with a corrupt module is drained with its cause, the other one is not.
set -euo pipefail
scankit=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fleet/tests/slurm.sh
. "$here/../fleet/tests/slurm.sh"
if why=$(slurm_missing); then echo "SKIP: $why" && exit 77; fi
rm -rf "$work" && mkdir -p "$work"
cluster=$(mktemp -d)
trap 'slurm_down; rm -rf "$cluster"' EXIT
fail() { echo "FAILED: $*" && exit 1; }

for node in node1 node2; do python3 -m venv --without-pip "$cluster/$node"; done
printf '<html>404</html>' >"$(echo "$cluster"/node2/lib/python3*/site-packages)/selective_scan_cuda.abi3.so"
"$scankit" ci init slurm-healthcheck --out "$cluster/made" >/dev/null
made=$(find "$cluster/made" -name '*.sh')
# What differs between two machines are their files; both daemons are of one here.
cat >"$cluster/healthcheck.sh" <<WRAPPER
#!/bin/sh
date +%s >>"$cluster/ran.\$SLURMD_NODENAME"
SLURM_CONF=$cluster/slurm.conf SCANKIT=$scankit SCANKIT_PYTHON=$cluster/\$SLURMD_NODENAME/bin/python exec bash $made
WRAPPER
chmod 755 "$cluster/healthcheck.sh"
slurm_conf_more="HealthCheckProgram=$cluster/healthcheck.sh
HealthCheckInterval=2"
slurm_up "$cluster" 2 1 # one stays idle

state() { scontrol --oneliner show node "$1" | sed -nE 's/.* State=([^ ]*).*/\1/p'; }
for ((i = 0; i < 300; i++)); do
  case $(state node2) in *DRAIN*) break ;; esac
  sleep 0.2
done
case $(state node2) in *DRAIN*) ;; *) tail -n 20 "$cluster"/log/* && fail "node2 was not drained: $(state node2)" ;; esac
scontrol --oneliner show node node2 | grep -q 'Reason=scankit: corrupt_binary ' || fail "its reason: $(scontrol --oneliner show node node2)"
runs() { wc -l <"$cluster/ran.$1"; }
before=$(runs node1)
for ((i = 0; i < 150; i++)); do [ "$(runs node1)" -lt $((before + 2)) ] || break && sleep 0.2; done
[ "$(runs node1)" -ge $((before + 2)) ] || fail "node1 was not looked at again"
[ "$(state node1)" = IDLE ] || fail "node1 is $(state node1)"
srun -w node1 -n1 true || fail "node1 takes no job"
echo "ok: a node with a corrupt module is drained, another one is not"
