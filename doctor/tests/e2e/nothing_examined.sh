#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nothing_examined.sh CASE SCANKIT MODULES WORK: ways to have nothing, or the wrong thing, examined. None may be green: each
# case asserts the exit status and the sentence that says so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=doctor/tests/e2e/expect.sh
. "$here/expect.sh"
name=$1 scankit=$(realpath "$2") work=$4/nothing_$1
rm -rf "$work" && mkdir -p "$work/project"
work=$(cd "$work" && pwd -P)
cd "$work/project"
unset VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME LD_LIBRARY_PATH GITHUB_ACTIONS GITHUB_STEP_SUMMARY
export LC_ALL=C
templates=$(cd "$here/../../../ci/templates" && pwd)
system=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')

bare() { "${python:-python3}" -m venv --without-pip "$1"; } # FOLDER: a venv without torch
site() { echo "$1"/lib/python3.*/site-packages; }         # FOLDER
dangling() { bare "$1" && ln -sfn /opt/gone/python3.11 "$1/bin/python" && ln -sfn python "$1/bin/python3"; }
# ends STATUS SENTENCE COMMAND...: the command's exit status, and what it says on either stream.
ends() {
  local status=$1 sentence=$2 code=0
  shift 2
  "$@" >"$work/out" 2>&1 </dev/null || code=$?
  [ "$code" -eq "$status" ] || expect_fail "exit status $code, should be $status: $* : $(cat "$work/out")"
  grep -qF -- "$sentence" "$work/out" || expect_fail "'$sentence' is not said: $(cat "$work/out")"
  ! grep -qE 'OK +(healthy|passed)' "$work/out" || expect_fail "it is called good: $(cat "$work/out")"
}
nothing='nothing to check: PyTorch is not installed for this Python and no compiled CUDA extension was found'
gone='the Python this venv was made from (/opt/gone/python3.11) no longer exists'
# As somebody who is not root: what may not be read shows only then. /tmp, since the build's folder may be closed to others.
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ "$@"; }
need_root() {
  python=/usr/bin/python3 # root's own pyenv is closed to others
  [ "$(id -u)" = 0 ] && [ -x "$python" ] || exit 77
  open=$(mktemp -d /tmp/scankit-nothing.XXXXXX)
  trap 'rm -rf "$open"' EXIT
  chmod 755 "$open" && cp "$scankit" "$open/scankit" && scankit=$open/scankit && cd /
}

# The active environment has no Python that works.
case_dangling_virtual_env() {
  dangling "$work/env"
  ends 1 "$gone" env VIRTUAL_ENV="$work/env" "$scankit" doctor
  grep -q 'broken: environment_python_gone' "$work/out" || expect_fail "the cause is not named"
  ! grep -q UNKNOWN "$work/out" || expect_fail "questions about an environment that is not there"
  tail -n 1 "$work/out" >command.sh
  grep -q -- '--clear' command.sh || expect_fail "the last line is no command: $(cat command.sh)"
  # The printed command repairs it.
  sh -e command.sh >repair.log 2>&1 || expect_fail "the command fails: $(cat repair.log)"
  ends 4 "$nothing" env VIRTUAL_ENV="$work/env" "$scankit" doctor --no-import
}
case_dangling_dot_venv() {
  dangling .venv
  ends 1 "./.venv: no Python at $PWD/.venv/bin/python: $gone" "$scankit" doctor --no-import
  ends 1 "$gone" env CONDA_PREFIX="${system%/bin/*}" "$scankit" doctor --no-import
}
case_dangling_conda_prefix() {
  mkdir -p "$work/conda/bin" "$work/conda/conda-meta" && ln -s /opt/gone/python3.11 "$work/conda/bin/python"
  ends 1 'CONDA_PREFIX: no Python at' env CONDA_PREFIX="$work/conda" "$scankit" doctor --no-import
}
case_conda_prefix_without_python() {
  mkdir -p "$work/conda/conda-meta"
  ends 1 'it is a folder without bin/python' env CONDA_PREFIX="$work/conda" "$scankit" doctor --no-import
}
case_virtual_env_names_no_folder() {
  ends 1 "VIRTUAL_ENV: no Python at $work/deleted: there is no such file" env VIRTUAL_ENV="$work/deleted" "$scankit" doctor --no-import
  [ "$(tail -n 1 "$work/out")" = 'unset VIRTUAL_ENV' ] || expect_fail "no way out is printed: $(tail -n 1 "$work/out")"
}
case_empty_folder_as_venv() {
  mkdir .venv
  ends 1 'it is a folder without bin/python' "$scankit" doctor --no-import
}
case_home_of_the_venv_gone() { # a copied interpreter starts and finds no standard library
  bare .venv && rm .venv/bin/python* && cp "$system" .venv/bin/python
  sed -i 's,^home = .*,home = /opt/gone/bin,' .venv/pyvenv.cfg
  ends 1 'has no standard library' "$scankit" doctor --no-import
}
case_python_not_executable() {
  bare .venv && rm .venv/bin/python* && cp "$system" .venv/bin/python && chmod 644 .venv/bin/python
  ends 1 'the file is not executable' "$scankit" doctor --no-import
}
case_python_truncated() {
  bare .venv && rm .venv/bin/python* && head -c $(($(stat -c %s "$system") / 2)) "$system" >.venv/bin/python && chmod 755 .venv/bin/python
  ends 1 './.venv: no Python at' "$scankit" doctor --no-import
}
case_python_for_another_architecture() {
  bare .venv && rm .venv/bin/python* && cp "$system" .venv/bin/python
  printf '\267\000' | dd of=.venv/bin/python bs=1 seek=18 conv=notrunc 2>dd.log # e_machine: EM_AARCH64
  ends 1 'it is made for aarch64, and this machine is' "$scankit" doctor --no-import
}
case_venv_of_another_user() { # permission denied is not absence
  need_root
  bare "$open/env" && mkdir -m 700 "$open/private" && cp "$system" "$open/private/python3"
  ln -sfn "$open/private/python3" "$open/env/bin/python"
  ends 1 'permission denied' as_nobody VIRTUAL_ENV="$open/env" "$scankit" doctor --no-import
  ! grep -q 'does not exist\|no longer exists' "$work/out" || expect_fail "denied is called absent: $(cat "$work/out")"
  ends 2 'permission denied' as_nobody "$scankit" doctor --no-import --python "$open/env/bin/python"
}
case_other_commands_refuse_too() {
  dangling .venv
  ends 1 "$gone" "$scankit" snapshot --out snapshot.json
  ends 1 "$gone" "$scankit" fix --dry-run
  ends 1 "$gone" "$scankit" validate --quick
  ends 1 "$gone" "$scankit" build --list-toolchains
  ends 1 "$gone" "$scankit" env init
  ends 1 "$gone" "$scankit" env lock
  ends 1 'failed: environment_python_gone' "$scankit" ci run --no-import
  ends 1 'environment_python_gone' "$scankit" doctor --from snapshot.json
}
case_a_policy_does_not_hide_it() {
  dangling .venv
  printf 'schema: 1\ncauses: {environment_python_gone: {severity: note}}\n' >scankit-ci.yaml
  ends 4 'neither passed nor failed' "$scankit" ci run --no-import
}
case_named_python_is_none() {
  ends 2 'no Python at /nope/python: there is no such file' "$scankit" doctor --python /nope/python
  [ "$(wc -l <"$work/out")" -eq 1 ] || expect_fail "more than one line: $(cat "$work/out")"
  for command in snapshot 'env init' 'env lock' 'validate --quick' 'fix --dry-run' 'ci run'; do
    # shellcheck disable=SC2086 # words
    ends 2 'no Python at /nope/python' "$scankit" $command --python /nope/python
  done
}

# Nothing is installed that could be examined.
case_nothing_in_doctor() {
  bare "$work/env"
  ends 4 "$nothing" "$scankit" doctor --python "$work/env"
  ends 4 "$nothing" "$scankit" doctor --no-import --python "$work/env"
  "$scankit" doctor --python "$work/env" --allow-empty >out 2>&1 || expect_fail "--allow-empty fails: $(cat out)"
  "$scankit" doctor --python "$work/env" --json >report.json 2>err || true
  [ "$(jq -r .verdict report.json)" = empty ] || expect_fail "verdict $(jq -r .verdict report.json)"
  for format in junit sarif markdown html prometheus; do
    "$scankit" doctor --no-import --python "$work/env" --report "$format=report.$format" >out 2>&1 || true
  done
  grep -q 'nothing to check' report.markdown && grep -q 'nothing to check' report.html && grep -q 'nothing to check' report.junit ||
    expect_fail "a report does not say it"
  grep -q 'verdict="empty"} 1' report.prometheus || expect_fail "the metrics do not say it"
}
case_nothing_in_the_gate() {
  bare "$work/env"
  ends 4 "$nothing" "$scankit" ci run --python "$work/env"
  "$scankit" ci run --python "$work/env" --allow-empty >out 2>&1 || expect_fail "--allow-empty fails: $(cat out)"
  printf 'schema: 1\nallow_empty: true\n' >scankit-ci.yaml
  "$scankit" ci run --python "$work/env" >out 2>&1 || expect_fail "allow_empty fails: $(cat out)"
}
case_nothing_on_a_slurm_node() {
  bare "$work/env" && mkdir "$work/bin"
  printf '#!/bin/sh\necho "$@" >>%s/scontrol.log\n' "$work" >"$work/bin/scontrol"
  printf '#!/bin/sh\necho "$@" >>%s/logger.log\n' "$work" >"$work/bin/logger"
  chmod 755 "$work"/bin/*
  check() { env PATH="$work/bin:$PATH" SCANKIT="$scankit" SCANKIT_PYTHON="$work/env" SCANKIT_POLICY=/none "$@" bash "$templates/slurm-healthcheck.sh"; }
  check env
  grep -q 'status 4, the node is left as it is: .*nothing to check' "$work/logger.log" || expect_fail "log: $(cat "$work"/*.log)"
  check env SCANKIT_REQUIRE=torch
  grep -q 'State=DRAIN Reason=scankit: required_missing' "$work/scontrol.log" || expect_fail "not drained: $(cat "$work"/*.log)"
}
case_nothing_for_the_node_problem_detector() {
  bare "$work/env"
  ends 2 'scankit: nothing to check' env SCANKIT="$scankit" SCANKIT_PYTHON="$work/env" SCANKIT_POLICY=/none bash "$templates/npd.sh"
  ends 1 'scankit: required_missing' env SCANKIT="$scankit" SCANKIT_PYTHON="$work/env" SCANKIT_POLICY=/none SCANKIT_REQUIRE=torch bash "$templates/npd.sh"
}
case_nothing_in_a_container() {
  bare "$work/env" && mkdir "$work/bin" && ln -s "$scankit" "$work/bin/scankit"
  python3 - "$templates/kubernetes-probe.yaml" >probe.sh <<'PYTHON'
import sys, textwrap
text = open(sys.argv[1]).read().split('- |\n', 1)[1].split('        timeoutSeconds', 1)[0]
print(textwrap.dedent(text))
PYTHON
  ends 1 'nothing to check' env PATH="$work/bin:$PATH" VIRTUAL_ENV="$work/env" sh probe.sh
  ends 4 'nothing to check' env PATH="$work/bin:$PATH" VIRTUAL_ENV="$work/env" scankit ci run --budget 50s # the start
}
case_required_and_absent() {
  bare "$work/env"
  ends 1 'torch is required and is not installed for this Python' "$scankit" doctor --no-import --python "$work/env" --require torch,json
  ends 1 'failed: required_missing' "$scankit" ci run --no-import --python "$work/env" --require selective_scan_cuda
  printf 'schema: 1\nrequire: [torch]\nsteps: {doctor: {enabled: false}}\n' >scankit-ci.yaml
  ends 1 'failed: required_missing' "$scankit" ci run --no-import --python "$work/env"
  "$scankit" doctor --no-import --python "$work/env" --require json >out 2>&1 || expect_fail "json is required and there: $(cat out)"
}
case_metadata_without_its_package() {
  bare "$work/env"
  mkdir "$(site "$work/env")/torch-2.11.0.dist-info"
  printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n' >"$(site "$work/env")/torch-2.11.0.dist-info/METADATA"
  printf 'torch/__init__.py,,\ntorch-2.11.0.dist-info/RECORD,,\n' >"$(site "$work/env")/torch-2.11.0.dist-info/RECORD"
  ends 1 'its metadata is installed' "$scankit" doctor --no-import --python "$work/env" --require torch
}
case_torch_without_its_libraries() {
  bare "$work/env" && mkdir -p "$(site "$work/env")/torch"
  touch "$(site "$work/env")/torch/__init__.py"
  echo "__version__ = '2.11.0+cu130'" >"$(site "$work/env")/torch/version.py"
  local code=0
  "$scankit" doctor --no-import --python "$work/env" >out 2>&1 || code=$?
  [ "$code" -eq 1 ] || [ "$code" -eq 4 ] || expect_fail "exit status $code: $(cat out)"
}

# What was named holds nothing.
case_so_of_an_empty_folder() {
  mkdir empty
  ends 2 'empty' "$scankit" doctor --so empty
}
case_root_of_an_empty_root() {
  mkdir empty
  ends 2 'no root file system' "$scankit" doctor --root empty
  mkdir -p empty/usr/bin empty/etc
  ends 4 'no Python found in the root' "$scankit" doctor --root empty
}
case_from_an_empty_snapshot() {
  echo '{"schema": 1}' >snapshot.json
  ends 4 'UNKNOWN' "$scankit" doctor --from snapshot.json
  ends 4 'UNKNOWN' "$scankit" doctor --from snapshot.json --require torch
}
case_log_without_content() {
  : >build.log
  local code=0
  "$scankit" doctor --log build.log >out 2>&1 || code=$?
  [ "$code" -ne 0 ] || expect_fail "an empty log is green: $(cat out)"
}
case_policy_that_switches_everything_off() {
  bare "$work/env"
  printf 'schema: 1\nsteps: {doctor: {enabled: false}, env_check: {enabled: false}, validate: {enabled: false}}\n' >scankit-ci.yaml
  ends 4 'nothing was checked: no step was run' "$scankit" ci run --python "$work/env"
}
case_budget_too_short() {
  bare "$work/env"
  local code=0
  "$scankit" doctor --no-import --python "$work/env" --budget 1ms >out 2>&1 || code=$?
  [ "$code" -eq 4 ] || expect_fail "exit status $code: $(cat out)"
}
case_extensions_that_cannot_be_read() {
  need_root
  bare "$open/env"
  cp "$system" "$(site "$open/env")/my_ext.cpython-$(python3 -c 'import sys; print("%d%d" % sys.version_info[:2])')-x86_64-linux-gnu.so"
  chmod 000 "$(site "$open/env")"/my_ext.*
  local code=0
  as_nobody "$scankit" doctor --no-import --python "$open/env" >"$work/out" 2>&1 || code=$?
  [ "$code" -eq 4 ] || expect_fail "exit status $code: $(cat "$work/out")"
}
case_unreadable_site_packages() {
  need_root
  bare "$open/env" && chmod 700 "$(site "$open/env")"
  local code=0
  as_nobody "$scankit" doctor --no-import --python "$open/env" >"$work/out" 2>&1 || code=$?
  [ "$code" -eq 4 ] || expect_fail "exit status $code: $(cat "$work/out")"
}
case_pythonpath_names_no_folder() {
  bare "$work/env"
  ends 4 "$nothing" env PYTHONPATH="$work/none" "$scankit" doctor --no-import --python "$work/env"
}

[ "$(type -t "case_$name")" = function ] || expect_fail "no case is called $name"
"case_$name"
