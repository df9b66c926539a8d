#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu-validate.sh --scankit FILE [--python P] [--against MODULE] [--keep DIR]
# On a machine with a GPU: what scankit validate does there. Our module must pass in every way (as it is, on a side stream,
# inside a graph), wrong modules must be caught and named, the limits, NVML's words, two modules, a baseline and the reports
# must be there. Exit status: 1 where one of it is not so; 77 where torch sees no GPU.
set -uo pipefail
scankit='' python=python3 against='' keep=''
while [ $# -gt 0 ]; do
  case "$1" in
    --scankit) scankit=$(readlink -f "$2"); shift 2 ;;
    --python) python=$2; shift 2 ;;
    --against) against=$2; shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    *) echo "gpu-validate.sh: unknown option $1 (known: --scankit FILE, --python P, --against MODULE, --keep DIR)" >&2; exit 2 ;;
  esac
done
[ -x "$scankit" ] || { echo "gpu-validate.sh: --scankit must name the program to test" >&2; exit 2; }
"$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' ||
  { rc=$?; [ $rc = 77 ] && echo "SKIPPED: torch sees no GPU"; exit $rc; }
cd "$(dirname "$0")/.." || exit 3
work=${keep:-$(mktemp -d)}
mkdir -p "$work"
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
bad=0

# validated NAME EXPECTED OPTION...: runs it, keeps its JSON as $work/NAME.json.
validated() {
  local name=$1 expected=$2 rc begin=$SECONDS
  shift 2
  "$scankit" validate --python "$python" --device cuda --report "json=$work/$name.json" --report "html=$work/$name.html" \
    --report "junit=$work/$name.xml" "$@" >"$work/$name.txt" 2>"$work/$name.err"
  rc=$?
  echo "== $name: exit $rc, $((SECONDS - begin)) s"
  [ $rc = "$expected" ] && return 0
  echo "gpu-validate.sh: $name ended with $rc, expected $expected"; tail -n 40 "$work/$name.txt" "$work/$name.err"; bad=1
}
# holds NAME CONDITION: of the JSON (r) of NAME.
holds() {
  "$python" - "$work/$1.json" "$2" <<'PY' || bad=1
import json, sys
r = json.load(open(sys.argv[1]))
failed = lambda way="": [c for c in r["cases"] if c["state"] == "failed" and c["device"] == "cuda:0" + way]
said = lambda way="": "\n".join(x for c in failed(way) for x in c["reasons"])
if not eval(sys.argv[2]):
    print("not so:", sys.argv[1], sys.argv[2], "\n" + said()[:800], said("+stream")[:400], said("+graph")[:400])
    sys.exit(1)
PY
}

"$scankit" build --python "$python" --module selective_scan_cuda --arch native --cache-dir "$work/cache" --out "$work/modules/" || exit 1
ours=$(echo "$work/modules/selective_scan_cuda".*.so)
validated quick 0 --module "$ours"
cat "$work/quick.txt"
for way in '' +stream +graph; do
  holds quick "sum(c['device'] == 'cuda:0$way' and c['state'] == 'passed' for c in r['cases']) > 20"
done
holds quick "r['limits']['cuda:0']['copy_bytes_per_s'] > 1e11 and r['limits']['cuda:0']['fma_per_s'] > r['limits']['cuda:0']['exp_per_s'] > 1e11"
holds quick "{t['cache'] for t in r['timing']} == {'cold', 'warm', 'host'}"
holds quick "all(t['gpu_state'].get('clock', 0) > 0 for t in r['timing'])"
holds quick "all(0 < t['limit']['reached'] < 1.1 and t['peak_bytes'] > 0 for t in r['timing'] if t['cache'] == 'cold')"
holds quick "r['seconds'] <= 30"
holds quick "any(c['id'].startswith('timed-') for c in r['cases'])"
holds quick "len(r['kernels']) >= 4 and all(k['blocks_per_multiprocessor'] > 0 and 16 <= k['registers'] <= 255 and k['stack_bytes'] == 0 for k in r['kernels'])"

some=(--case q011-fp32-b2-d6-l31-n3-g3-D --case q008-fp16-b2-d3-l2-n4-g1-Dz --case q000-fp32-b2-d4-l128-n8-g1-Dzbsf
  --case h000-fp32-b1-d6-l70-n4-g1-DzbsN)
validated baseline 0 --module "$ours" --baseline "$work/quick.json" "${some[@]}"
holds baseline "sum('baseline' in t for t in r['timing']) > 10"
sed 's/"gpu": "[^"]*"/"gpu": "NVIDIA L4"/' "$work/quick.json" >"$work/foreign.json"
validated foreign 4 --module "$ours" --baseline "$work/foreign.json" "${some[@]}"
holds foreign "'NVIDIA L4' in r['baseline']['problem']"

# The wrong ones: which way fails, and what must be among the reasons.
export SCANKIT_INNER_MODULE=$ours
wrong() {
  local name=$1 way=$2 word=$3
  shift 3
  [ $# -gt 0 ] || set -- "${some[@]}"
  validated "$name" 6 --module "$PWD/validate/tests/gpu/$name.py" --no-timing "$@"
  holds "$name" "'$word' in said('$way')"
}
wrong runs_on_the_default_stream +stream 'out'
holds runs_on_the_default_stream "not failed()"
wrong waits_inside +graph 'capt'
holds waits_inside "not failed() and not failed('+stream')"
wrong keeps_its_answer '' 'second data in the same tensors'
wrong leaves_the_last_row '' 'is nan, expected'
wrong takes_nan_for_zero '' 'expected nan'
wrong sums_by_atomics '' 'differs between two equal calls'
wrong takes_all_memory '' 'emory'
wrong faults '' 'CUDA error' --case q008-fp16-b2-d3-l2-n4-g1-Dz
for name in ignores_z drops_last_odd_step swaps_groups_of_dB wrong_only_in_dA writes_one_past_dz returns_input_memory; do
  validated "$name" 6 --module "$PWD/validate/tests/modules/$name.py" --no-timing "${some[@]}" \
    --case q007-bf16-b3-d5-l1-n16-g1-Dzbsp
done
validated other_arity 6 --module "$PWD/validate/tests/modules/other_arity.py" --no-timing "${some[@]}"
holds other_arity "any(c['error_kind'] == 'arity' for c in r['cases'])"

validated against 0 --module "$ours" --against "${against:-$PWD/validate/tests/gpu/inner.py}" "${some[@]}"
holds against "sum(t.get('against', {}).get('verdict') in ('SAME', 'FASTER', 'SLOWER', 'AMBIGUOUS') for t in r['timing']) > 5"
sed -n '/^faster than/,/^$/p;/^compared with/,/failed$/p' "$work/against.txt"
# Somebody else on the GPU: what NVML shows of it depends on the container.
"$python" -c 'import time, torch
x = torch.ones(4096, 4096, device="cuda")
end = time.time() + 40
while time.time() < end: x = (x @ x).clamp(0, 1)' &
busy=$!
validated crowded 0 --module "$ours" --against "$ours" "${some[@]}"
kill $busy 2>/dev/null
wait $busy 2>/dev/null
grep -h 'not to be trusted\|clock was' "$work/crowded.txt" || echo "(nothing disturbed the timings)"
validated sanitizer 0 --module "$ours" --full --no-timing "${some[@]}"
grep sanitizer "$work/sanitizer.txt"
holds sanitizer "sum(c['id'].startswith('compute-sanitizer') and c['state'] == 'passed' for c in r['cases']) == 4"
[ $bad = 0 ] && echo "1 passed, 0 failed" || echo "0 passed, 1 failed"
exit $bad
