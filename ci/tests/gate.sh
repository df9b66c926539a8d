#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scankit ci run with real children, on a Python without torch:  gate.sh SCANKIT
set -euo pipefail
# shellcheck source=ci/tests/checks.sh
. "$(dirname "$0")/../../ci/tests/checks.sh"
scankit=$(realpath "$1")
templates=$(cd "$(dirname "$0")/../templates" && pwd)
export XDG_CACHE_HOME=$work/cache LC_ALL=C
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX GITHUB_ACTIONS GITHUB_STEP_SUMMARY
python3 -m venv --without-pip "$work/env"
python=$work/env/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir "$work/project" && cd "$work/project"
# This Python has no torch: an environment without a module has nothing to check, which is not what these cases are about.
run() { "$scankit" ci run --allow-empty --python "$python" "$@"; }
policy() { printf 'schema: 1\n%s\n' "$1" >scankit-ci.yaml; }
field() { "$python" -c 'import json, sys; print(eval("answer" + sys.argv[2], {"answer": json.load(open(sys.argv[1]))}))' "$work/out" "$1"; }
break_module() { printf '<html>404</html>' >"$site/selective_scan_cuda.abi3.so"; } # what a failed download leaves
mend_module() { rm -f "$site/selective_scan_cuda.abi3.so"; }

case_absent_is_not_unknown() {
  check "no torch, no module, no spec: nothing to check" status_is 4 "$scankit" ci run --python "$python"
  check "which is said" says "nothing to check: PyTorch is not installed for this Python"
  check "and may be allowed" status_is 0 run --json
  check "as such" test "$(field '["verdict"]')" = empty
  check "doctor alone was run" test "$(field '["steps"].__len__()')" = 1
  check "and it says what was not" says "scankit env init writes one"
  policy 'steps: {env_check: {enabled: true}}'
  check "what the policy demands is not left out" status_is 2 run
  policy 'steps: {validate: {enabled: true}}'
  check "nor is this: without torch nothing can be told" status_is 4 run
  rm scankit-ci.yaml
}

case_policy() {
  break_module
  check "without a policy an error fails" status_is 1 run
  check "and is named" says "(corrupt_binary)"
  policy 'causes: {corrupt_binary: {severity: warning}}'
  check "a warning does not" status_is 0 run
  policy 'causes: {corrupt_binary: {allowed_until: 2999-12-31, reason: the mirror is being repaired}}'
  check "nor what is allowed" status_is 0 run
  check "which is said" says "allowed until 2999-12-31: the mirror is being repaired"
  policy 'causes: {corrupt_binary: {allowed_until: 2020-01-31, reason: the mirror is being repaired}}'
  check "until its day has passed" status_is 1 run
  check "which is said, too" says "its allowance expired on 2020-01-31"
  mend_module
  check "an allowance that has ended and allows nothing is a warning" status_is 0 run
  check "with its line" says "allowance_expired"
  policy 'cause: {}'
  printf 'green' >report.xml
  check "a wrong policy fails closed" status_is 2 run --report junit=report.xml --report prometheus=node.prom --out kept
  check "with its place" says 'scankit-ci.yaml:2:1: unknown field "cause" (did you mean "causes"?)'
  check "no step was run" test ! -e kept/doctor.json
  check "the reports say so" grep -q '<error type="unknown"' report.xml
  check "that of the monitor, too" grep -q '^scankit_exit_status{command="ci run"} 2$' node.prom
  chmod 000 scankit-ci.yaml
  [ "$(id -u)" = 0 ] || check "a policy that cannot be read is not one that is not there" status_is 2 run
  rm -f scankit-ci.yaml && ln -s nowhere scankit-ci.yaml
  check "nor is a link that leads nowhere" status_is 2 run
  rm -f scankit-ci.yaml
  mkdir scankit-ci.yaml
  check "nor a folder" status_is 2 run
  rmdir scankit-ci.yaml
}

case_resume() {
  rm -rf kept
  check "a run with --out" status_is 0 run --out kept
  local before
  before=$(stat -c %Y.%y.%i kept/doctor.json)
  check "--resume" status_is 0 run --out kept --resume
  check "runs nothing again" test "$(stat -c %Y.%y.%i kept/doctor.json)" = "$before"
  break_module
  check "where the environment is another one, it does" status_is 1 run --out kept --resume
  mend_module
  check "and back" status_is 0 run --out kept --resume
  before=$(stat -c %y.%i kept/doctor.json)
  policy 'fail_on: warning'
  check "where the policy is another one, too" status_is 0 run --out kept --resume
  check "really" test "$(stat -c %y.%i kept/doctor.json)" != "$before"
  for spoiled in '' '{' '[]' '{"schema": 1}' '{"schema": 99, "key": 1}' 'foreign'; do
    before=$(stat -c %y.%i kept/doctor.json)
    printf '%s' "$spoiled" >kept/doctor.step.json
    check "a step file that holds '$spoiled' is no answer" status_is 0 run --out kept --resume
    check "it is run anew" test "$(stat -c %y.%i kept/doctor.json)" != "$before"
  done
  truncate -s 100 kept/doctor.json
  check "nor is an answer that was cut" status_is 0 run --out kept --resume
  check "--resume without --out is refused" status_is 2 run --resume
  rm scankit-ci.yaml
  touch file
  check "--out that is a file is refused" status_is 2 run --out file
  # From here on every interpreter of this environment hangs.
  printf 'import time\ntime.sleep(60)\n' >"$site/sitecustomize.py"
  run --out kept >/dev/null 2>&1 &
  local running=$!
  child() { pgrep -f "scankit --lang en doctor --python $python" | head -n 1; }
  for ((i = 0; i < 200; i++)); do [ -z "$(child)" ] || break; sleep 0.1; done
  check "two runs into one folder are refused" status_is 2 run --out kept
  check "with what to do" says "another scankit ci run is writing to kept"
  check "a step that crashes is our own failure" kill -SEGV "$(child)"
  local status=0
  wait "$running" || status=$?
  check "status 3 ($status)" test "$status" = 3
  rm "$site/sitecustomize.py"
}

case_time() {
  printf 'import time\ntime.sleep(60)\n' >"$site/sitecustomize.py"
  # validate is run too: without an answer of doctor's it is not known that it has nothing to do.
  policy 'steps: {doctor: {timeout: 1}, validate: {timeout: 1}}'
  local start=$SECONDS
  check "a step that hangs is killed" status_is 4 run
  check "and said" says "doctor exceeded its time limit of 1 s and was killed"
  rm scankit-ci.yaml
  check "a budget ends it, too" status_is 4 run --budget 1s
  check "which is said" says "within the time limit of --budget"
  check "doctor has one of its own" status_is 4 "$scankit" doctor --python "$python" --budget 700ms
  check "of which it speaks" says "the imports did not end within the time limit of --budget"
  check "without a moment nothing is known" status_is 4 run --budget 1ms
  check "all of that took seconds" test $((SECONDS - start)) -lt 50 # a hang is of 60
  check "no child is left" test -z "$(pgrep -f "$python" || true)"
  check "a budget that is none is refused" status_is 2 run --budget soon
  rm "$site/sitecustomize.py"
}

case_job_page() {
  break_module
  printf 'before\n' >page.md
  GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$PWD/page.md status_is 1 run >/dev/null || true
  check "annotations on stdout" says "::error title=scankit%3A corrupt_binary::"
  check "the page keeps what was there" grep -qx before page.md
  check "and has the answer" grep -q '^## scankit ci run: the gate failed: .*corrupt' page.md
  GITHUB_ACTIONS=true status_is 1 run --json >/dev/null || true
  check "JSON stays JSON" "$python" -m json.tool "$work/out" "$work/pretty"
  GITHUB_STEP_SUMMARY=/proc/nowhere status_is 3 run >/dev/null || true
  check "a page that cannot be written is said" says "cannot open \$GITHUB_STEP_SUMMARY"
  mend_module
}

# Slurm's and the node-problem-detector's scripts, with a recorder in the place of the commands that change a cluster.
case_monitors() {
  mkdir -p "$work/bin"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "$(basename "$0") $*" >>"$RECORD"\n[ "$2" != show ] || cat "$STATE"\n' >"$work/bin/scontrol"
  cp "$work/bin/scontrol" "$work/bin/logger"
  chmod +x "$work"/bin/*
  export RECORD=$work/record STATE=$work/state SCANKIT=$scankit SCANKIT_PYTHON=$python PATH=$work/bin:$PATH
  export SCANKIT_POLICY=$work/policy.yaml SLURMD_NODENAME=n1
  health() { : >"$RECORD" && bash "$templates/slurm-healthcheck.sh"; }
  echo 'NodeName=n1 State=IDLE ThreadsPerCore=1' >"$STATE"
  printf 'schema: 1\nallow_empty: true\n' >"$SCANKIT_POLICY"
  check "a good node" status_is 0 health
  check "is left alone" test ! -s "$RECORD"
  check "the detector is told 0" status_is 0 bash "$templates/npd.sh"
  rm "$SCANKIT_POLICY"
  break_module
  check "a bad node" status_is 0 health
  check "is drained with the cause" grep -qx 'scontrol update NodeName=n1 State=DRAIN Reason=scankit: corrupt_binary' "$RECORD"
  check "the detector is told 1" status_is 1 bash "$templates/npd.sh"
  check "in one short line" test "$(wc -c <"$work/out")" -le 80
  echo 'NodeName=n1 State=IDLE+DRAIN ThreadsPerCore=1' >"$STATE"
  health
  check "who drained it before keeps the reason" sh -c "! grep -q update '$RECORD'"
  printf 'schema: 1\ncauses: {corrupt_binary: {severity: note}}\n' >"$work/policy.yaml"
  check "the policy decides" status_is 0 bash "$templates/npd.sh"
  printf 'schema: one\n' >"$work/policy.yaml"
  health
  check "a wrong policy drains nothing" sh -c "! grep -q update '$RECORD'"
  check "and is logged" grep -q '^logger -t scankit status 2, the node is left as it is' "$RECORD"
  check "the detector is told that nothing is known" status_is 2 bash "$templates/npd.sh"
  rm "$work/policy.yaml"
  SCANKIT_BUDGET=1ms health
  check "no time: not drained" sh -c "! grep -q update '$RECORD' && grep -q 'status 4' '$RECORD'"
  SCANKIT=$work/gone health
  check "no scankit: not drained" sh -c "! grep -q update '$RECORD' && grep -q 'status 127' '$RECORD'"
  check "a file for the exporter" env SCANKIT_TEXTFILE="$work/node.prom" bash "$templates/slurm-healthcheck.sh"
  check "with the cause" grep -q 'scankit_finding{command="ci run",cause="corrupt_binary",severity="error"' "$work/node.prom"
  mend_module
}

# As root no other user's code runs (ARCHITECTURE.md, decision 17): the module would leave a mark.
case_root() {
  [ "$(id -u)" = 0 ] || { echo "SKIPPED: not root" && return 0; }
  printf 'open("%s", "w").write("run")\n' "$work/mark" >"$site/causal_conv1d_cuda.py"
  chown 65534 "$site/causal_conv1d_cuda.py"
  chmod 777 "$work"
  run --json >"$work/out" 2>"$work/err" || true
  check "root runs no other user's code" test ! -e "$work/mark"
  check "and says why" grep -q 'belongs to user 65534' "$work/out"
  SCANKIT=$scankit SCANKIT_PYTHON=$python bash "$templates/npd.sh" >/dev/null || true
  check "nor does the detector" test ! -e "$work/mark"
  "$scankit" snapshot --python "$python" --import >/dev/null 2>&1 || true
  check "nor does snapshot" test ! -e "$work/mark"
  policy 'steps: {doctor: {args: [--import]}}'
  check "a policy cannot say otherwise" status_is 2 run
  check "it is refused" test ! -e "$work/mark"
  rm scankit-ci.yaml
  run --import >/dev/null 2>&1 || true
  check "who asks for it gets it" test -e "$work/mark"
  rm "$site/causal_conv1d_cuda.py"
}

case_init() {
  mkdir made && cd made
  for kind in policy github gitlab pre-commit slurm-healthcheck kubernetes-probe node-problem-detector; do
    check "init $kind" status_is 0 "$scankit" ci init "$kind" --out "$kind"
    before=$(find "$kind" -type f -exec sha256sum {} + | sort)
    check "$kind again writes over nothing" status_is 2 "$scankit" ci init "$kind" --out "$kind"
    check "not a byte" test "$(find "$kind" -type f -exec sha256sum {} + | sort)" = "$before"
    check "but by --force" status_is 0 "$scankit" ci init "$kind" --out "$kind" --force
  done
  check "no place is left open" sh -c '! grep -rnE "@[A-Z0-9_]+@" .'
  check "the schema that lies beside is that of the command" sh -c "'$scankit' ci schema | cmp - policy/scankit-ci.schema.json"
  echo '# mine' >>github/scankit-ci.yaml
  check "a policy that is there stays, even by --force" status_is 0 "$scankit" ci init github --out github --force
  check "to the last line" grep -qx '# mine' github/scankit-ci.yaml
  rm github/.github/workflows/scankit.yml && ln -s nowhere github/.github/workflows/scankit.yml
  check "a link that leads nowhere is not written through" status_is 2 "$scankit" ci init github --out github
  check "an unknown kind is refused" status_is 2 "$scankit" ci init travis
  cd policy
  check "a run takes the policy as it is" status_is 0 run
  cd ../..
}

shift
run_cases "$@"
