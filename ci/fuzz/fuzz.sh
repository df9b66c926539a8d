#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh SECONDS [TARGET...]: builds the fuzzers with clang in build/fuzz and runs each target (default: all) for SECONDS under
# AddressSanitizer and UndefinedBehaviorSanitizer, from its corpus and dictionary. What it finds lies in build/fuzz/found/TARGET.
# --slice N: every Nth target, beginning one further with each commit. --keep: minimises, and adds to the corpus what is new,
# up to 64 KB a target. Prints a table: target, executions, coverage in edges, inputs, findings. Status 1 with a finding.
set -euo pipefail
cd "$(dirname "$0")/../.."
slice=1 keep=no words=()
while [ $# -gt 0 ]; do
  case $1 in
    --slice) slice=$2 && shift ;;
    --keep) keep=yes ;;
    -*) sed -n '3,6s/^# //p' "$0" >&2 && exit 2 ;;
    *) words+=("$1") ;;
  esac
  shift
done
[ ${#words[@]} -gt 0 ] || { sed -n '3,6s/^# //p' "$0" >&2 && exit 2; }
seconds=${words[0]} targets=("${words[@]:1}") build=${FUZZ_BUILD:-build/fuzz}
command -v clang++ >/dev/null || { echo "SKIP: no clang++ here (package clang)"; exit 77; }
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null || { echo "SKIP: this clang has no libFuzzer (package libclang-rt-14-dev)"; exit 77; }
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(cd ci/fuzz/corpus && printf '%s\n' *)
  if [ "$slice" -gt 1 ]; then
    first=$(($(git rev-list --count HEAD) % slice)) turn=()
    for i in "${!targets[@]}"; do [ $((i % slice)) -ne $first ] || turn+=("${targets[i]}"); done
    targets=("${turn[@]}")
  fi
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DSCANKIT_FUZZ=ON >"$build.log" 2>&1 || { cat "$build.log" && exit 1; }
ninja -C "$build" "${targets[@]/#/fuzz_}" >>"$build.log" 2>&1 || { grep -A5 -E 'FAILED|error:' "$build.log" | head -n 40 && exit 1; }

found=0
printf '%-14s %12s %8s %8s %9s\n' target executions edges inputs findings
for target in "${targets[@]}"; do
  corpus=ci/fuzz/corpus/$target work=$build/work/$target hits=$build/found/$target
  mkdir -p "$work" "$hits"
  # One input may take 10 s (a hang) and 1 GiB: what is more is a finding.
  "$build/ci/fuzz/fuzz_$target" "$work" "$corpus" -dict="ci/fuzz/dictionaries/$target.dict" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$hits/" -print_final_stats=1 >"$work.log" 2>&1 || true
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work.log" | tail -n 1)
  edges=$(grep -oE 'cov: [0-9]+' "$work.log" | tail -n 1 | cut -d' ' -f2)
  count=$(find "$hits" -type f | wc -l)
  found=$((found + count))
  printf '%-14s %12s %8s %8s %9s\n' "$target" "${runs:-0}" "${edges:-0}" "$(find "$work" -type f | wc -l)" "$count"
  # A fuzzer that could not even start has looked at nothing.
  [ "${runs:-0}" -gt 0 ] || [ "$count" -gt 0 ] || { tail -n 5 "$work.log" && exit 1; }
  if [ $keep = yes ]; then
    rm -rf "$work.min" && mkdir "$work.min"
    "$build/ci/fuzz/fuzz_$target" -merge=1 -max_len=4096 "$work.min" "$corpus" "$work" >/dev/null 2>&1 || true
    room=65536
    while read -r size file; do
      [ "$size" -le $room ] || break
      cp -n "$file" "$corpus/" && room=$((room - size))
    done < <(find "$work.min" -type f -printf '%s %p\n' | sort -n)
  fi
done
[ $found -eq 0 ] || { echo "findings: $build/found"; exit 1; }
