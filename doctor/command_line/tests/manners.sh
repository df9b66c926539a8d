#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# manners.sh CASE SCANKIT: what the program itself says of its command line, with its exit statuses.
set -euo pipefail
case_name=$1 scankit=$2
sources=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C.UTF-8
die() { echo "FAIL: $*" >&2 && exit 1; }

# A recorded machine whose module was built for another torch.
snapshot=$work/snapshot.json
python3 - "$sources/doctor/tests/machines/cpu_torch211/snapshot.json" >"$snapshot" <<'PY'
import json, sys
facts = json.load(open(sys.argv[1]))
facts["extensions"]["value"][0]["missing_symbols"] = [
    {"name": "_ZN3c104cuda9SetDeviceEi", "demangled": "c10::cuda::SetDevice(int)", "owner": "torch", "near": ["c10::cuda::SetDevice(signed char, bool)"]}]
json.dump(facts, sys.stdout)
PY

# run STATUS WORD...: leaves out and err.
run() {
  local status=0
  "$scankit" "${@:2}" >out 2>err </dev/null || status=$?
  [ $status = "$1" ] || die "scankit ${*:2} ends with $status, not with $1: $(cat out err)"
}
says() { grep -qF -- "$1" "${2:-err}" || die "\"$1\" is not in: $(cat "${2:-err}")"; }
silent() { [ ! -s "$1" ] || die "$1 is not empty: $(cat "$1")"; }

manners_help() {
  local asked
  run 0 help && says 'Usage: scankit [OPTIONS] <COMMAND>' out && silent err
  mv out by_command && run 0 --help && cmp -s out by_command || die "scankit help and --help differ"
  for asked in doctor 'env lock' 'ci init' 'fleet run' help; do
    # shellcheck disable=SC2086
    run 0 help $asked && says "Usage: scankit $asked" out && mv out by_command
    # shellcheck disable=SC2086
    run 0 $asked --help && cmp -s out by_command || die "scankit help $asked and scankit $asked --help differ"
  done
  run 2 help docter && says "did you mean 'doctor'?" && silent out
}

manners_version() {
  run 0 --version && mv out long && run 0 -V
  cmp -s out long || die "-V and --version differ"
  grep -qxE 'scankit [0-9.]+.*' out || die "no version: $(cat out)"
}

# As uv has it: the list is the answer, and it is no success.
manners_bare_group() {
  run 2 env && says '  lock ' out && says '  check ' out && silent err
  run 2 ci && says '  init ' out
  run 2 fleet && says '  report ' out
}

manners_mistakes() {
  run 2 docter
  says "scankit: unexpected argument 'docter'; did you mean 'doctor'? (see: scankit --help)"
  run 2 doctor --pyton x
  says "scankit: unexpected argument '--pyton'; did you mean '--python'? (see: scankit doctor --help)"
  run 2 env chekc && says "did you mean 'check'? (see: scankit env --help)"
  run 2 env diff a && says 'missing argument <B> (see: scankit env diff --help)'
  run 2 doctor --from a --log b --all && says 'cannot be used together'
  run 2 build --arch sm_90 --arch sm_80 && says '--arch was given 2 times and is accepted once'
  run 2 doctor --report jsn=x && says 'unknown report format "jsn"; did you mean json?'
  run 2 fleet run --slurm --out x -- && silent out
  [ "$(wc -l <err)" = 1 ] || die "more than a line: $(cat err)"
}

manners_paths_of_the_user() {
  run 2 doctor --from "$snapshot" --report html=/nonexistent/x.html
  says 'scankit: cannot write /nonexistent/x.html: the directory /nonexistent does not exist'
  run 2 ci init policy --out /proc/nonexistent && ! grep -q 'XXXXXX\|\.[A-Za-z0-9]\{6\}:' err || die "$(cat err)"
}

manners_explain() {
  run 0 explain && says torch_version_mismatch out
  run 0 explain 'undefined symbol' && says 'scankit explain torch_version_mismatch' out
  run 0 explain undefined symbol && says 'scankit explain torch_version_mismatch' out
  run 0 explain 'ImportError: libcudart.so.12: cannot open shared object file: No such file or directory'
  [ "$(head -c 15 out)" = missing_cudart: ] || die "not the cause: $(cat out)"
  run 2 explain torch_version_mismach && says 'did you mean torch_version_mismatch?' && silent out
}

manners_quiet() {
  run 1 doctor --from "$snapshot" -q
  [ "$(wc -l <out)" = 2 ] || die "not two lines: $(cat out)"
  says 'broken: torch_version_mismatch' out && says 'scankit fix --python' out
  run 2 doctor -q -v && says 'cannot be used together'
}

# On a real terminal; a screen that knows no colours, and a user who wants none, get none.
manners_colour() {
  cat >terminal.py <<'PY'
import os, pty, sys
command = sys.argv[1:]
seen = b""
pid, fd = pty.fork()
if pid == 0:
    os.execv(command[0], command)
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
PY
  env -u NO_COLOR TERM=xterm python3 terminal.py "$scankit" doctor --from "$snapshot" >seen
  grep -qF "$(printf '\033[1mtorch_version_mismatch\033[0m')" seen || die "the cause is not bold: $(cat -v seen)"
  grep -qE "$(printf '^\033\\[1mscankit fix --python')" seen || die "the command is not bold: $(cat -v seen)"
  NO_COLOR=1 TERM=xterm python3 terminal.py "$scankit" doctor --from "$snapshot" >seen
  ! grep -q "$(printf '\033')" seen || die "NO_COLOR is not obeyed: $(cat -v seen)"
  env -u NO_COLOR TERM=dumb python3 terminal.py "$scankit" doctor --from "$snapshot" >seen
  ! grep -q "$(printf '\033')" seen || die "TERM=dumb gets escapes: $(cat -v seen)"
}

"manners_$case_name"
