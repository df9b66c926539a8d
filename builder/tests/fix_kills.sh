#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The finished program is killed on entry of every system call by which `fix` and `restore` change a file system, or the
# call fails: ENOSPC and EROFS from that call on, EIO for that one.
#   fix_kills.sh SCANKIT PYTHON_WITH_TORCH [--fault KILL|ENOSPC|EROFS|EIO] [--every N] [CALL...]
# After each what Python would import is the old file or the new one, whole; after `restore` the folder is as before,
# byte by byte. Status 0 means done. Only scankit itself is traced: its children are Python.
set -euo pipefail
scankit=$1
# shellcheck source=builder/tests/fix.sh
. "$(dirname "$0")/fix.sh"
python=${SCANKIT_TEST_PYTHON:-$2}
shift 2
fault=KILL every=1
while [[ ${1:-} = --* ]]; do
  case $1 in
    --fault) fault=$2 ;;
    --every) every=$2 ;;
    *) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
  esac
  shift 2
done
skip_without_torch "$python"
strace -o /dev/null true 2>/dev/null || { echo "SKIPPED: no strace that may trace here" && exit 77; }
calls=("$@")
[ $# -gt 0 ] || calls=(openat mkdir rename renameat2 link linkat unlink unlinkat rmdir symlink symlinkat ftruncate fchmod pwrite64 fsync
  syncfs write)

venv_beside "$python" "$env"
for module in selective_scan_cuda causal_conv1d_cuda; do printf '<!DOCTYPE html>' >"$site/$module$suffix"; done
old=$(state)
fix=("$scankit" fix --python "$env/bin/python" --arch compute_75 --yes)
restore=("$scankit" restore --python "$env/bin/python")
# The bytes that import would take of both modules; nothing is loaded.
taken() {
  "$env/bin/python" -c 'import hashlib, importlib.util as u
for name in ("selective_scan_cuda", "causal_conv1d_cuda"):
    print(name, hashlib.sha256(open(u.find_spec(name).origin, "rb").read()).hexdigest())'
}
old_taken=$(taken)
check "the fix works at all" status_is 0 "${fix[@]}"
[ "$failures" = 0 ] || end  # nothing below could be held against it
new=$(state) new_taken=$(taken)
both=$(printf '%s\n%s\n' "$old_taken" "$new_taken")
check "and can be taken back" status_is 0 "${restore[@]}"

# ordinals VERB CALL: which of the CALLs of that verb change a file system; of openat those that create a file.
ordinals() {
  local command=("${fix[@]}") count
  [ "$1" = fix ] || command=("${restore[@]}")
  strace -o "$work/trace" -e "trace=$2" "${command[@]}" >/dev/null 2>&1 </dev/null || true
  if [ "$2" = openat ]; then
    grep -n O_CREAT "$work/trace" | cut -d: -f1
  elif [ "$2" = write ]; then
    grep -nvE '^write\((1|2|[0-9]+, NULL)' "$work/trace" | grep -v '+++' | cut -d: -f1
  else
    count=$(grep -c "^$2(" "$work/trace" || true)
    seq 1 "$count"
  fi
}

injection() { # CALL N, as strace wants it
  case $fault in
    KILL) echo "inject=$1:signal=KILL:when=$2" ;;
    EIO) echo "inject=$1:error=EIO:when=$2" ;;
    *) echo "inject=$1:error=$fault:when=$2+" ;;
  esac
}

kills=0 turn=0
# kill_at VERB CALL N; before it the environment is as VERB finds it
kill_at() {
  local verb=$1 call=$2 n=$3 status=0 command=("${fix[@]}") now line
  [ "$verb" = fix ] || command=("${restore[@]}")
  strace -o /dev/null -e "$(injection "$call" "$n")" "${command[@]}" >"$work/said" 2>&1 </dev/null || status=$?
  [ "$fault" != KILL ] || [ "$status" = 137 ] || return 0
  kills=$((kills + 1))
  if [ "$fault" != KILL ]; then
    local wanted=$new
    [ "$verb" = fix ] || wanted=$old
    [ "$status" != 0 ] || [ "$(state)" = "$wanted" ] || { echo "FAILED: $verb $call $n: status 0, but it is not done" && failures=$((failures + 1)); }
    [ "$status" = 0 ] || [ "$status" -lt 128 ] || { echo "FAILED: $verb $call $n: ended with $status" && failures=$((failures + 1)); }
    [ "$status" = 0 ] || [ -s "$work/said" ] || [ "$call" = write ] || { echo "FAILED: $verb $call $n: status $status without a word" && failures=$((failures + 1)); }
  fi
  now=$(taken) || now=broken
  while read -r line; do
    grep -qxF -- "$line" <<<"$both" || { echo "FAILED: $verb $call $n: import takes $line" && failures=$((failures + 1)); }
  done <<<"$now"
  "${restore[@]}" >"$work/out" 2>&1 || { echo "FAILED: $verb $call $n: restore: $(cat "$work/out")" && failures=$((failures + 1)); }
  # A fix that was killed behind its end is undone by that restore, or by the next.
  [ "$(state)" = "$old" ] || "${restore[@]}" >>"$work/out" 2>&1 || true
  [ "$(state)" = "$old" ] || { echo "FAILED: $verb $call $n: neither the old state nor the new: $(cat "$work/out")" && failures=$((failures + 1)); }
  [ ! -d "$env/.scankit/staging" ] || [ -z "$(ls -A "$env/.scankit/staging")" ] || echo "note: $verb $call $n: staging is not empty"
}
ready() { # the state in which VERB begins
  if [ "$1" = fix ]; then
    [ "$(state)" = "$old" ] || "${restore[@]}" >/dev/null 2>&1
  else
    [ "$(state)" = "$new" ] || "${fix[@]}" >/dev/null 2>&1 </dev/null
  fi
}

for call in "${calls[@]}"; do
  for verb in fix restore; do
    before=$kills
    ready $verb
    for n in $(ordinals $verb "$call"); do
      turn=$((turn + 1))
      [ $((turn % every)) -eq 0 ] || continue
      ready $verb
      kill_at $verb "$call" "$n"
    done
    echo "$verb $call: $fault $((kills - before)) times"
  done
done
check "something was hit" test "$kills" -gt 0
ready fix
check "and the fix still works" status_is 0 "${fix[@]}"
echo "$kills times $fault"
end
