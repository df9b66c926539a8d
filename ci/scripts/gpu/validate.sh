#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# validate.sh --scankit FILE [--python P] [--against MODULE] [--upstream-tests FILE] [--mamba FOLDER] [--keep DIR] [--budget SECONDS]
# On a machine with a GPU, within --budget (540 s): what scankit validate does there. Our module must pass in every way (as it
# is, on a side stream, inside a graph, between bands), wrong modules must be caught and named, limits, kernels, NVML's
# words, two modules, baselines and reports must be there. A step that fails does not end it; what the time does not
# suffice for is said not to have run. FOLDER holds mamba_ssm and what it needs, for its two steps. Everything written is under --keep. Exit status: 1 where a step failed; 4 where
# none did and one did not run; 77 where torch sees no GPU.
set -uo pipefail
scankit='' python=python3 against='' upstream='' mamba='' keep='' budget=540
while [ $# -gt 0 ]; do
  case "$1" in
    --scankit) scankit=$(readlink -f "$2"); shift 2 ;;
    --python) python=$2; shift 2 ;;
    --against) against=$2; shift 2 ;;
    --upstream-tests) upstream=$2; shift 2 ;;
    --mamba) mamba=$(readlink -f "$2"); shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    --budget) budget=$2; shift 2 ;;
    *) echo "validate.sh: unknown option $1 (see its first lines)" >&2; exit 2 ;;
  esac
done
[ -x "$scankit" ] || { echo "validate.sh: --scankit must name the program to test" >&2; exit 2; }
"$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' ||
  { rc=$?; [ $rc = 77 ] && echo "SKIPPED: torch finds no GPU"; exit $rc; }
cd "$(dirname "$0")/../../.." || exit 3
work=${keep:-$(mktemp -d)}
mkdir -p "$work" && work=$(readlink -f "$work")
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
# shellcheck source=ci/scripts/gpu/steps.sh
. ci/scripts/gpu/steps.sh

some=(--case q011-fp32-b2-d6-l31-n3-g3-D --case q008-fp16-b2-d3-l2-n4-g1-Dz --case q000-fp32-b2-d4-l128-n8-g1-Dzbsf
  --case h000-fp32-b1-d6-l70-n4-g1-DzbsN)

step build "$scankit" build --python "$python" --module selective_scan_cuda --arch native --cache-dir "$work/cache" \
  --out "$work/modules/"
ours=$(echo "$work/modules/selective_scan_cuda".*.so)
[ -f "$ours" ] || summary
export SCANKIT_INNER_MODULE=$ours

# The main run: every way, the limits, the kernels, the five percent, the thirty seconds.
validated quick 0 --module "$ours"
sed -n '/, measured now: /,$p' "$work/quick.txt" 2>/dev/null
for way in '' +stream +graph +bands; do
  holds quick "sum(c['device'] == 'cuda:0$way' and c['state'] == 'passed' for c in r['cases']) > 10"
done
holds quick "r['limits']['cuda:0']['copy_bytes_per_s'] > 1e11 and r['limits']['cuda:0']['fma_per_s'] > r['limits']['cuda:0']['exp_per_s'] > 1e11"
holds quick "{t['cache'] for t in r['timing']} == {'cold', 'warm', 'host'}"
holds quick "all(t['gpu_state'].get('clock', 0) > 0 for t in r['timing'])"
holds quick "all(0 < t['limit']['reached'] < 1.1 and t['peak_bytes'] > 0 for t in r['timing'] if t['cache'] == 'cold')"
holds quick "any(c['id'].startswith('timed-') for c in r['cases'])"
holds quick "len(r['kernels']) >= 4 and all(k['blocks_per_multiprocessor'] > 0 and 16 <= k['registers'] <= 255 and k['stack_bytes'] == 0 for k in r['kernels'])"
holds quick "any(k['bank_conflicts'] is not None for k in r['kernels'])"
holds quick "r['seconds'] <= 30"
holds quick "r['harness']['cuda:0']['added'] <= 0.05"

# Wrong modules, side by side: which way fails, and what must be among the reasons.
gpu=$PWD/validate/tests/gpu cpu=$PWD/validate/tests/modules
wrong writes_behind_its_result "$gpu" +bands 'fwd wrote past the end of out (byte 1 past the end)'
wrong writes_before_its_result "$gpu" +bands 'bwd wrote before the start of dA (byte 1 before it)'
wrong runs_on_the_default_stream "$gpu" +stream 'out'
wrong waits_inside "$gpu" +graph 'capt'
wrong keeps_its_answer "$gpu" '' 'second data in the same tensors'
wrong leaves_the_last_row "$gpu" '' 'is nan, expected'
wrong takes_nan_for_zero "$gpu" '' 'expected nan'
wrong sums_by_atomics "$gpu" '' 'differs between two equal calls'
for name in ignores_z drops_last_odd_step swaps_groups_of_dB wrong_only_in_dA writes_one_past_dz returns_input_memory other_arity; do
  wrong "$name" "$cpu" '' '' --case q007-bf16-b3-d5-l1-n16-g1-Dzbsp
done
all_wrong_ones
holds runs_on_the_default_stream "not failed()"
holds waits_inside "not failed() and not failed('+stream')"
holds other_arity "any(c['error_kind'] == 'arity' for c in r['cases'])"
# These trouble whoever else is on the GPU.
wrong faults "$gpu" '' 'CUDA error' --case q008-fp16-b2-d3-l2-n4-g1-Dz
all_wrong_ones
wrong takes_all_memory "$gpu" '' 'emory'
all_wrong_ones

validated sanitizer 0 --module "$ours" --full --no-timing "${some[@]}"
grep -h sanitizer "$work/sanitizer.txt" 2>/dev/null
holds sanitizer "sum(c['id'].startswith('compute-sanitizer') and c['state'] == 'passed' for c in r['cases']) == 4"

# Upstream's build, all cases: what it gets wrong is named and decides nothing.
validated against 0 --module "$ours" --against "${against:-$gpu/inner.py}"
sed -n '/^faster than/,/^$/p;/^compared with/,/failed$/p' "$work/against.txt" 2>/dev/null
holds against "sum(t.get('against', {}).get('verdict') in ('SAME', 'FASTER', 'SLOWER', 'AMBIGUOUS') for t in r['timing']) > 5"
[ -n "$against" ] || left_out upstreams_build "give --against MODULE"

mapfile -t long < <("$scankit" validate --list-cases --full --seed 1 | grep -o '"id": *"[^"]*-l65536-[^"]*"' | sed 's/.*"id": *"//; s/"$//')
validated long 0 --module "$ours" --full --seed 1 --against "$ours" "${long[@]/#/--case=}"
sed -n '/^speed/,/^$/p' "$work/long.txt" 2>/dev/null
holds long "any(t['shape']['length'] == 65536 for t in r['timing'])"

# mamba_ssm's fast path wants the convolution, too.
step build_conv "$scankit" build --python "$python" --module causal_conv1d_cuda --arch native --cache-dir "$work/cache" \
  --out "$work/modules/"
beside=$work/modules${mamba:+:$mamba}${PYTHONPATH:+:$PYTHONPATH}
if PYTHONPATH=$beside "$python" -c 'import mamba_ssm' 2>"$work/mamba_import.err"; then
  PYTHONPATH=$beside validated mamba 0 --module "$ours" --no-timing --case q000-fp32-b2-d4-l128-n8-g1-Dzbsf --case model-mamba_ssm
  holds mamba "any(c['id'] == 'model-mamba_ssm' and c['state'] == 'passed' for c in r['cases'])"
  if [ -n "$upstream" ]; then
    PYTHONPATH=$beside validated upstream_tests 0 --no-timing --upstream-tests "$upstream" "${some[@]}"
    tail -n 8 "$work/upstream_tests.txt" 2>/dev/null
    # Thousands of tests, each beside a reference in Python: as many as two minutes suffice for. Of those with 16-bit tensors
    # one in ten misses upstream's tolerances, by up to twice, as upstream's own build does there: most must pass.
    if [ "$(seconds_left)" -lt $enough ]; then left_out upstream_more "no time was left"; else
      begin=$SECONDS
      PYTHONPATH=$beside one upstream_more 0 --no-timing --upstream-tests "$upstream" --commented-parameters --timeout 120 "${some[@]}"
      rc=$?
      judged upstream_more "$([ $rc = 6 ] && echo 6 || echo 0)" $rc $((SECONDS - begin))
      mostly_passed "$work/upstream_more.txt" || failed_in upstream_more "one in five of upstream's tests fails, or none ran"
    fi
    tail -n 25 "$work/upstream_more.txt" 2>/dev/null
  else
    left_out upstream_tests "give --upstream-tests tests/ops/test_selective_scan.py"
  fi
else
  tail -n 2 "$work/mamba_import.err"
  left_out mamba "mamba_ssm is not in this Python: give --mamba FOLDER"
fi

validated baseline 0 --module "$ours" --baseline "$work/quick.json" "${some[@]}"
holds baseline "sum('baseline' in t for t in r['timing']) > 10"
sed 's/"gpu": "[^"]*"/"gpu": "NVIDIA L4"/' "$work/quick.json" >"$work/foreign_baseline.json"
validated foreign 4 --module "$ours" --no-timing --baseline "$work/foreign_baseline.json" "${some[@]}"
grep -q 'NVIDIA L4' "$work/foreign.err" || failed_in foreign "the other GPU is not told at once"

# Somebody else on the GPU: what NVML shows of it depends on the container.
"$python" -c 'import time, torch
x = torch.ones(4096, 4096, device="cuda")
end = time.time() + 40
while time.time() < end: x = (x @ x).clamp(0, 1)' &
busy=$!
validated crowded 0 --module "$ours" --against "$ours" "${some[@]}"
kill $busy 2>/dev/null
wait $busy 2>/dev/null
grep -h 'not reliable\|clock was' "$work/crowded.txt" || echo "(nothing disturbed the timings)"
summary
