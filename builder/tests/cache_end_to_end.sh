#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cache, --explain and the manifest, by the finished program:  cache_end_to_end.sh SCANKIT
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
sources=$(dirname "$0")/../..
file=causal_conv1d_cuda.abi3.so
with() {  # with PROGRAM ARCH CACHE OUT OPTION...
  "$1" build --module causal_conv1d_cuda --arch "$2" --cache-dir "$3" --out "$4/" "${@:5}"
}
build() { status_is 0 with "$scankit" "$@"; }
"$scankit" build --list-toolchains --cache-dir "$work/listed" >"$work/list" 2>/dev/null || true
grep -q '^NVRTC' "$work/list" || { echo "SKIPPED: no NVRTC on this machine"; exit 77; }

# Two at once with one cache, and a third that is killed in the middle of a write into it.
cache=$work/cache
with "$scankit" compute_90 "$cache" "$work/one" >"$work/one.log" 2>&1 </dev/null &
one=$!
with "$scankit" compute_90 "$cache" "$work/two" >"$work/two.log" 2>&1 </dev/null &
two=$!
# fchmod() comes after the bytes and before the rename; the first one is of the memo on the compiler, or of the source.
killed=no
if strace -o /dev/null true 2>/dev/null; then
  strace -qq -f -o "$work/trace" -e trace=fchmod -e inject=fchmod:signal=SIGKILL:when=3 \
    "$scankit" build --module causal_conv1d_cuda --arch compute_86 --cache-dir "$cache" --out "$work/three/" \
    >"$work/three.log" 2>&1 </dev/null || true
  killed=$(find "$cache" -name '*.??????' | head -n 1)
fi
check "the first of two builders at once succeeds" wait "$one"
check "the second too" wait "$two"
check "with the same bytes" cmp "$work/one/$file" "$work/two/$file"
check "all of it is in the cache" build compute_90 "$cache" "$work/four"
check "and whole" says "are in the cache"
check "and still the same" cmp "$work/one/$file" "$work/four/$file"
if [ "$killed" = no ]; then
  echo "note: no strace here: no builder is killed in the middle of a write"
else
  check "a builder was killed in the middle of a write" test -n "$killed" -a ! -e "$work/three/$file"
  check "that does not hinder the next one" build compute_86 "$cache" "$work/five"
  check "whose bytes are right" build compute_86 "$work/clean" "$work/six"
  check "as from a clean cache" cmp "$work/five/$file" "$work/six/$file"
  touch -d '2 hours ago' "$killed"
fi

# What the keys are for: the reason of a miss.
check "another architecture is a miss" build sm_90 "$cache" "$work/seven"
check "and says so" says "compiled: conv_f32 and 3 more for sm_90: never built with this cache"
check "what the killed one left is gone" test ! -e "$killed"
comment=$(grep -m 1 '^// [A-Z]' <(grep -v SPDX "$sources/kernels/causal_conv1d/cuda/forward.cuh"))
LC_ALL=C sed "s|${comment//[.*\[\]]/.}|${comment%?}!|" "$scankit" >"$work/newer" && chmod +x "$work/newer"
check "a changed header is a miss" status_is 0 with "$work/newer" sm_90 "$cache" "$work/eight"
check "and is named" says "since the last build kernels/causal_conv1d/cuda/forward.cuh changed"
check "the next build of the first one is a hit" build sm_90 "$cache" "$work/seven"
check "from before" says "are in the cache"
check "they are compared" status_is 0 with "$work/newer" sm_90 "$cache" "$work/eight" --explain "$work/seven/$file"
check "label by label" says "all images: kernels/causal_conv1d/cuda/forward.cuh changed"

# --explain with each kind of OTHER.
check "inputs as JSON" build sm_90 "$cache" "$work/seven" --explain --json
cp "$work/out" "$work/saved.json"
for other in "$work/saved.json" "$work/seven/$file" "$work/seven/$file.json"; do
  check "the same as $(basename "$other")" build sm_90 "$cache" "$work/seven" --explain "$other"
  check "which it says" says "everything that this build depends on is the same as in"
done
check "the list names its labels" build sm_90 "$cache" "$work/seven" --explain
check "with the source's files" says "source kernels/causal_conv1d/cuda/forward.cuh: "
check "no other build" status_is 2 with "$scankit" sm_90 "$cache" "$work/seven" --explain "$0"

# Bounded: least recently used first, never what the running build needs.
check "a small cache" build sm_90 "$work/small" "$work/small1" --cache-size 1100K
check "and more than it holds" build sm_86 "$work/small" "$work/small1" --cache-size 1100K
check "keeps the running build" build sm_86 "$work/small" "$work/small1" --cache-size 1100K
check "whole" says "are in the cache"
check "and not the old one" build sm_90 "$work/small" "$work/small1" --cache-size 0
check "by size" test "$(du -sk "$work/small" | cut -f1)" -lt 1200
check "a size that is none" status_is 2 with "$scankit" sm_90 "$cache" "$work/seven" --cache-size 1X

# Damaged, read-only, full: slower, with a note, and right.
entry=$(find "$cache/objects" -type f -size +100k | head -n 1)
printf x | dd of="$entry" bs=1 seek=5000 conv=notrunc status=none
check "a damaged entry is a miss" build sm_90,compute_90,compute_86 "$cache" "$work/nine"
check "with a note" says "the file in the cache was damaged and removed: $entry"
check "a cache that cannot be made" build sm_90 "$work/list/nowhere" "$work/ten"
check "is a note" says "note: cannot write to the cache $work/list/nowhere, so the next build will compile again: "
check "and a right module" cmp "$work/ten/$file" "$work/seven/$file"
mkdir "$work/mounted"
in_mount() { unshare -m bash -c 'm=$0 o=$1; shift; mount -t tmpfs -o "$o" none "$m" && exec "$@"' "$work/mounted" "$@"; }
if in_mount size=64k true 2>/dev/null; then
  for how in size=64k ro; do
    check "a cache on a file system with $how" status_is 0 in_mount "$how" \
      "$scankit" build --module causal_conv1d_cuda --arch sm_90 --cache-dir "$work/mounted/c" --out "$work/ten/"
    check "is a note, too" says "so the next build will compile again: "
    check "and gives the same bytes" cmp "$work/ten/$file" "$work/seven/$file"
  done
else
  echo "note: nothing can be mounted here: no full and no read-only file system is tried"
fi

# --show-manifest and what is no module.
shown() { status_is "$1" "$scankit" build --show-manifest "$2"; }
check "a manifest" shown 0 "$work/seven/$file"
head -c 200000 "$work/seven/$file" >"$work/cut.so"
check "none in half a module" shown 2 "$work/cut.so"
check "which says what it is" says "contains no manifest:"
echo '<!DOCTYPE html><p>gone' >"$work/page.so"
check "none in a web page" shown 2 "$work/page.so"
check "which it is" says "a web page saved under this name"
check "none in the program itself" shown 2 "$scankit"
check "none where no file is" shown 2 "$work/none.so"
check "none in a folder" shown 2 "$work"
cp "$work/seven/$file" "$work/flipped.so"
offset=$(($(stat -c %s "$work/flipped.so") * 3 / 4)) # in an image: the host module is the first half
printf '\377\377\377\377' | dd of="$work/flipped.so" bs=1 seek="$offset" conv=notrunc status=none
check "an image that is not the manifest's" shown 1 "$work/flipped.so"
check "is named" says "does not match its manifest"
end
