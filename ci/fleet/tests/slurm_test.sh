#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm_test.sh SCANKIT PYTHON MODULE WORK: `scankit fleet run --slurm` on a real Slurm of four nodes. One dies while it
# works, one hangs, one has another module, one is slow; then what the user can do wrong, and what a run costs beside srun.
set -euo pipefail
scankit=$1 python=$2 module=$3 work=$4
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fleet/tests/slurm.sh
. "$here/slurm.sh"
# shellcheck source=ci/fixtures.sh
. "$here/../../fixtures.sh"
if why=$(slurm_missing); then echo "SKIP: $why" && exit 77; fi
readers=$(fx_report_readers)/bin/python || { echo "SKIP: the readers cannot be installed here" && exit 77; }
rm -rf "$work" && mkdir -p "$work"/{common,other}
cluster=$(mktemp -d) # where another user gets to it, too
trap 'slurm_down; rm -rf "$cluster"' EXIT

cp "$module" "$work/common/selective_scan_cuda.abi3.so"
echo 'of another build' >"$work/note"
objcopy --add-section .comment.other="$work/note" "$module" "$work/other/selective_scan_cuda.abi3.so"
# What differs between the nodes, set where a site would: before each task, on its node.
cat >"$cluster/prolog" <<PROLOG
#!/bin/sh
case \$SLURMD_NODENAME in
  node3) echo "export PYTHONPATH=$work/other" ;;
  node4) echo "export PYTHONPATH=$work/common" && echo "export SCANKIT_CPU_ISA=portable" ;;
  *) echo "export PYTHONPATH=$work/common" ;;
esac
PROLOG
chmod 755 "$cluster/prolog"
slurm_up "$cluster" 4

fail() { echo "FAILED: $*" && exit 1; }
# fleet_run FOLDER EXPECTED SLURM_OPTION... -- COMMAND...
fleet_run() {
  local folder=$1 expected=$2 code=0
  shift 2
  "$scankit" fleet run --slurm --out "$folder" "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$expected" ] || { cat "$work/out" "$work/err" && fail "exit status $code, not $expected, of: $*"; }
}
# value FOLDER EXPRESSION: of the report as JSON, `r`; `n` are its nodes by name.
value() {
  "$scankit" fleet report "$1" --json >"$work/report.json" || true
  "$readers" -c 'import json, sys
r = json.load(open(sys.argv[1]))
n = {node["node"]: node for node in r["nodes"]}
print(eval(sys.argv[2]))' "$work/report.json" "$2"
}
expect() { # FOLDER EXPRESSION VALUE
  local got
  got=$(value "$1" "$2")
  [ "$got" = "$3" ] || { cat "$work/report.json" && fail "$2 is $got, not $3"; }
}

echo "== one dies, one hangs, one has another module, one is slow"
# Cases alone are judged; --against has them timed.
command=(validate --python "$python" --device cpu --against "$work/common/selective_scan_cuda.abi3.so"
  --case q011-fp32-b2-d6-l31-n3-g3-D --seed 5)
all=$work/all
(
  for ((i = 0; i < 200; i++)); do
    [ -n "$(slurm_tasks node1)" ] && [ -n "$(slurm_tasks node2)" ] && break
    sleep 0.05
  done
  sleep 1
  slurm_node_dies node1
  for task in $(slurm_tasks node2); do kill -STOP "$task"; done
) &
breaker=$!
fleet_run "$all" 4 -N4 --timeout 60 -- "${command[@]}"
wait "$breaker"
cat "$work/out"
expect "$all" '[n[f"node{i}"]["state"] for i in (1, 2, 3, 4)]' "['lost', 'hung', 'answered', 'answered']"
expect "$all" 'r["verdict"], r["counts"]["unknown"]' "('unknown', 2)"

echo "== the same line goes on with those that did not answer"
slurm_node_up node1
slurm_wait_idle 4
before=$(sha256sum "$all/node3.json" "$all/node4.json")
fleet_run "$all" 0 -N4 --timeout 300 -- "${command[@]}"
cat "$work/out"
[ "$before" = "$(sha256sum "$all/node3.json" "$all/node4.json")" ] || fail "a node that had answered ran again"
expect "$all" '{d["fact"]: [o["nodes"] for o in d["others"]] for d in r["differences"]}["sha256:selective_scan_cuda"]' "[['node3']]"
expect "$all" '"node4" in {o["node"] for o in r["outliers"] if o["unit"] == "ms" and o["worse"]}' True
expect "$all" 'r["verdict"], r["counts"]["passed"]' "('healthy', 4)"
fleet_run "$all" 0 -N4 -- "${command[@]}" # nothing is left to do
fleet_run "$all" 1 -N4 --fail-on warning -- "${command[@]}"

echo "== what the user can do wrong"
fleet_run "$all" 2 -N4 -- doctor --python "$python"
grep -q 'another fleet' "$work/err" || fail "two fleets in one folder"
flock "$all/fleet.lock" sleep 3 &
sleep 0.5
fleet_run "$all" 2 -N4 -- "${command[@]}"
grep -q 'another scankit' "$work/err" || fail "two launchers at once"
fleet_run "$work/none" 2 -p nowhere -- doctor
grep -q 'the partition does not exist' "$work/err" || fail "a partition that does not exist"
code=0
PATH=/nowhere "$scankit" fleet run --slurm --out "$work/none" -- doctor 2>"$work/err" || code=$?
[ "$code" = 2 ] && grep -q 'not on PATH' "$work/err" || fail "no srun: $code"
fleet_run "$work/none" 2 -N4 -- fix --yes
fleet_run "$work/none" 4 -N40 --immediate=1 -- doctor

cp "$scankit" "$cluster/scankit"
mkdir -m 777 "$cluster/nobody"
code=0
setpriv --reuid=65534 --regid=65534 --clear-groups "$cluster/scankit" fleet run --slurm -p others --out "$cluster/nobody" -- \
  doctor 2>"$work/err" || code=$?
[ "$code" = 2 ] && grep -q 'may not use this partition' "$work/err" || { cat "$work/err" && fail "no permission: $code"; }

echo "== a launcher that is killed"
(
  for ((i = 0; i < 200; i++)); do [ -n "$(slurm_tasks node1)" ] && break || sleep 0.05; done
  for pid in $(pgrep -x salloc); do
    # shellcheck disable=SC2046
    if grep -qz "$cluster" "/proc/$pid/environ"; then kill -9 $(pgrep -P "$pid"); fi
  done
) &
fleet_run "$work/gone" 4 -N4 -- "${command[@]}" # salloc itself ends with 0
wait $!
expect "$work/gone" 'r["counts"]["unknown"], "the launcher ended" in n["node1"]["why"]' "(4, True)"
slurm_wait_idle 4

echo "== a node that Slurm does not have"
scontrol update nodename=node2 state=drain reason='broken fan'
fleet_run "$work/drained" 4 -N3 --expect 'node[1-4]' -- doctor --python "$python" --no-import
expect "$work/drained" 'n["node2"]["state"], "broken fan" in n["node2"]["why"]' "('not_allocated', True)"
scontrol update nodename=node2 state=resume

echo "== an allocation that ends early"
(
  for ((i = 0; i < 200; i++)); do [ -n "$(slurm_tasks node1)" ] && break || sleep 0.05; done
  scancel --name=scankit-fleet
) &
fleet_run "$work/early" 4 -N4 -- "${command[@]}"
wait $!
grep -q 'run the same command again' "$work/out" || { cat "$work/out" && fail "an allocation that ends early"; }
expect "$work/early" 'r["counts"]["unknown"], r["counts"]["nodes"]' "(4, 4)"

echo "== in an allocation that is there, and a folder that the nodes do not see"
salloc -Q -N4 "$scankit" fleet run --slurm --out "$work/inside" -- doctor --python "$python" --no-import >"$work/out" 2>"$work/err" ||
  { cat "$work/out" "$work/err" && fail "inside an allocation"; }
expect "$work/inside" 'r["counts"]["passed"]' 4
if unshare --mount true 2>/dev/null; then
  mkdir "$work/hidden"
  kill "$(cat "$cluster/slurmd.node4.pid")" && sleep 1
  slurm_node_up node4 "$work/hidden"
  slurm_wait_idle 4
  fleet_run "$work/hidden" 0 -N4 -- doctor --python "$python" --no-import
  expect "$work/hidden" 'r["counts"]["passed"], "is not visible" in n["node4"]["notes"][0]' "(4, True)"
else
  echo "no mount namespaces here: a node that lost its file system was not tried"
fi
echo "ok: a real Slurm"
