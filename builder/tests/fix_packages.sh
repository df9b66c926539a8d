#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repairs that run the user's own installer, and environments that an installer keeps:
#   fix_packages.sh SCANKIT [CASE...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=doctor/tests/e2e/packages.sh
. "$here/../../doctor/tests/e2e/packages.sh"
scankit=$1
shift
# shellcheck source=builder/tests/fix.sh
. "$here/fix.sh"
wheels=$(fx_wheels) || exit 77
# What mamba_ssm imports is there; of torch's metadata nothing may be fetched (its CUDA wheels are gigabytes).
ready_for_mamba() {
  fx_scratch_env "$env" plain >/dev/null
  install_transformers_4 "$env"
  install_with "$env" "$FX_TRITON"
  export PIP_NO_DEPS=1
}
fix() { "$scankit" fix --python "$env/bin/python" --arch compute_75 "$@"; }

case_mamba() {
  ready_for_mamba
  whole >"$work/before"
  check "the plan shows the command" status_is 0 fix --package mamba-ssm==2.3.1 --package causal-conv1d==1.6.1 --dry-run
  check "with what keeps it from compiling" says "MAMBA_SKIP_CUDA_BUILD=TRUE"
  check "without consent nothing is done" status_is 1 fix --package mamba-ssm==2.3.1
  whole | cmp -s - "$work/before" || { echo "FAILED: something changed" && failures=$((failures + 1)); }
  check "both are installed without their CUDA build" status_is 0 fix --package mamba-ssm==2.3.1 --package causal-conv1d==1.6.1 --yes
  check "Mamba can be imported" "$env/bin/python" -c 'from mamba_ssm import Mamba
import torch, selective_scan_cuda, causal_conv1d_cuda
from mamba_ssm.ops import selective_scan_interface as interface
assert interface.selective_scan_cuda is selective_scan_cuda and interface.causal_conv1d_fn is not None
for module in (selective_scan_cuda, causal_conv1d_cuda):
    assert module.__file__.endswith(".abi3.so"), module.__file__'
  check "the package is the installer's own" sh -c "ls -d '$(fx_site "$env/bin/python")'/mamba_ssm-2.3.1.dist-info"
  check "a second fix has nothing to do" status_is 0 fix --package mamba-ssm --yes
  check "restore" status_is 0 restore
  check "says what was run" says "mamba-ssm==2.3.1"
  whole >"$work/after"
  check "takes all of it back" diff "$work/before" "$work/after"
  check "other packages are not ours to choose" status_is 2 fix --package flash-attn --yes
}

# sdist NAME VERSION REQUIRES SETUP_LINE: into $work/index
sdist() {
  local folder=$work/make/$1-$2
  mkdir -p "$folder/${1//-/_}" "$work/index"
  : >"$folder/${1//-/_}/__init__.py"
  cat >"$folder/setup.py" <<PY
import subprocess, sys
from setuptools import setup
$4
setup(name="$1", version="$2", packages=["${1//-/_}"], install_requires=[$3])
PY
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$folder/PKG-INFO"
  tar -C "$work/make" -czf "$work/index/$1-$2.tar.gz" "$1-$2"
}

retry() {
  for _ in $(seq 100); do
    "$@" >"$work/out" 2>"$work/err" && return 0
    grep -q 'another scankit is changing this environment' "$work/err" || break
    sleep 0.05
  done
  cat "$work/out" "$work/err" && false
}
# The installer is killed with scankit, in the middle of its work; whoever comes next finds the old packages.
case_killed_installer() {
  ready_for_mamba
  whole >"$work/before"
  local word fixer
  for word in 'Collecting mamba-ssm' 'Building wheel' 'Installing collected'; do
    : >"$work/progress"
    # Not by the function: that would be a shell, and its death is not scankit's.
    "$scankit" fix --python "$env/bin/python" --arch compute_75 --package mamba-ssm==2.3.1 --yes >/dev/null 2>"$work/progress" </dev/null &
    fixer=$!
    until grep -q "$word" "$work/progress" || ! kill -0 "$fixer" 2>/dev/null; do :; done
    kill -9 "$fixer" 2>/dev/null || true
    wait "$fixer" 2>/dev/null || true
    check "killed at '$word': restore" retry restore # the installer dies with it, and holds the lock until then
    whole >"$work/after"
    check "killed at '$word': the old packages" diff "$work/before" "$work/after"
  done
  # What a build started is of no session and no parent of ours, and writes on.
  local site daemon
  site=$(fx_site "$env/bin/python")
  cat >"$work/daemon.py" <<PY
import itertools, os, time
open("$work/daemon", "w").write(str(os.getpid()))
for i in itertools.count():
    open("$site/stray-%d" % i, "w").close()
    time.sleep(0.01)
PY
  sdist mamba-ssm 99.3 '' "if 'bdist_wheel' in sys.argv:
    subprocess.run(['setsid', '-f', sys.executable, '$work/daemon.py'])
    subprocess.run(['sleep', '60'])"
  PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/index "$scankit" fix --python "$env/bin/python" --arch compute_75 \
    --package mamba-ssm==99.3 --yes >/dev/null 2>"$work/progress" </dev/null &
  fixer=$!
  until [ -e "$site/stray-9" ] || ! kill -0 "$fixer" 2>/dev/null; do :; done
  kill -9 "$fixer" || failures=$((failures + 1))
  wait "$fixer" 2>/dev/null || true
  daemon=$(cat "$work/daemon")
  # Until they have all ended the lock is theirs.
  check "killed while a build's daemon writes: restore" retry restore
  check "killed while a build's daemon writes: it has ended" test ! -e "/proc/$daemon"
  whole >"$work/after"
  check "killed while a build's daemon writes: the old packages" diff "$work/before" "$work/after"
  check "and the next fix installs" status_is 0 fix --package mamba-ssm==2.3.1 --yes
}

# An installer that fails, and one that exchanges torch on the way, leave no trace.
case_failed_installer() {
  ready_for_mamba
  whole >"$work/before"
  check "a release that does not exist" status_is 5 fix --package mamba-ssm==99.0 --yes
  check "is said with the command" says "mamba-ssm==99.0"
  whole >"$work/after"
  check "and changes nothing" diff "$work/before" "$work/after"
  rm -rf "$(fx_site "$env/bin/python")"/tokenizers
  whole >"$work/before"
  check "what is installed and does not import" status_is 6 fix --package mamba-ssm==2.3.1 --yes
  check "is taken out again" says "nothing was changed"
  whole >"$work/after"
  check "with all that came with it" diff "$work/before" "$work/after"
}

# torch is what all compiled modules stand on: it is held where that can be said, and comes back where it went all the same.
case_exchanged_torch() {
  ready_for_mamba
  unset PIP_NO_DEPS
  mkdir -p "$work/make/torch-2.4.0"
  sdist torch 2.4.0 '' ''
  "$env/bin/python" -m pip --disable-pip-version-check -q wheel --no-deps --no-build-isolation --no-index -w "$work/index" \
    "$work/index/torch-2.4.0.tar.gz" 2>"$work/err" || { cat "$work/err" && exit 1; }
  sdist mamba-ssm 99.1 '"torch==2.4.0"' ''
  sdist mamba-ssm 99.2 '' 'if "bdist_wheel" in sys.argv:
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--no-deps", "torch==2.4.0"])'
  export PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/index"
  whole >"$work/before"
  check "the plan holds torch" status_is 0 fix --package mamba-ssm==99.1 --dry-run
  check "and shows how" says "--constraint <(printf '%s\n' torch==2.11.0"
  check "a package that wants another torch is not installed" status_is 5 fix --package mamba-ssm==99.1 --yes
  check "since torch is held" grep -q 'ResolutionImpossible\|conflicting dependencies' "$work/err"
  whole >"$work/after"
  check "and nothing changes" diff "$work/before" "$work/after"
  check "the same command without that exchanges it" "$env/bin/python" -m pip -q install --no-build-isolation --dry-run \
    --report "$work/report.json" mamba-ssm==99.1
  check "really" jq -e '[.install[].metadata | select(.name == "torch" and .version == "2.4.0")] | length == 1' "$work/report.json"
  check "a package whose build exchanges torch behind the installer's back" status_is 5 fix --package mamba-ssm==99.2 --yes
  check "is found out" grep -q 'the installer replaced torch 2\.11\.0.* with 2\.4\.0, which was not requested' "$work/err"
  check "with what to do" says "install a release of the package that supports torch 2.11.0"
  whole >"$work/after"
  check "and torch is back" diff "$work/before" "$work/after"
  check "and works" "$env/bin/python" -c 'import torch; assert torch.__version__.startswith("2.11.0") and torch.zeros(2).sum() == 0'
}

case_uv_project() {
  local uv site project=$work/project
  uv=$(fx_installers)/bin/uv || exit 77
  mkdir -p "$project"
  local minor
  minor=$("$(fx_python)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  cat >"$project/pyproject.toml" <<TOML
[project]
name = "mine"
version = "1"
requires-python = "==$minor.*"
# my own comment
dependencies = ["markupsafe==3.0.2"]
TOML
  export UV_CACHE_DIR=$work/uv UV_OFFLINE=1 UV_NO_INDEX=1
  UV_FIND_LINKS=$(fx_packages markupsafe==3.0.2)
  export UV_FIND_LINKS PATH="${uv%/uv}:$PATH"
  (cd "$project" && uv sync -q --python "$(fx_python)")
  env=$project/.venv
  site=$(fx_site "$env/bin/python")
  fx_site "$(fx_torch_env)/bin/python" >"$site/torch.pth"
  # A file that uv links from its cache: broken in the environment alone.
  local cached before
  cached=$(find "$work/uv" -name '_speedups*.so' | head -1)
  before=$(sha256sum <"$cached")
  printf '<!DOCTYPE html>' >"$site/causal_conv1d_cuda.so"
  cp "$project/pyproject.toml" "$project/uv.lock" "$work/"
  whole >"$work/before"
  without_uv() { env -u UV HOME="$work" PATH=/usr/bin:/bin "$scankit" fix --python "$env/bin/python" --arch compute_75 "$@"; }
  check "without uv there is a plan" status_is 0 without_uv --module causal_conv1d_cuda --dry-run
  check "which says what uv will do" says "$project is a uv project, but uv is not on PATH"
  check "and does it" status_is 0 without_uv --module causal_conv1d_cuda --yes
  check "saying it again" says 'to do by hand: '
  check "the project is as it was" sh -c "cmp '$project/pyproject.toml' '$work/pyproject.toml' && cmp '$project/uv.lock' '$work/uv.lock'"
  check "what it said is so: uv sync takes it out" sh -c "cd '$project' && uv sync -q && ! '$env/bin/python' -c 'import torch, causal_conv1d_cuda' 2>/dev/null"
  check "restore all the same" status_is 0 restore
  whole >"$work/after"
  check "to the old state" diff "$work/before" "$work/after"
  check "the plan names the project" status_is 0 fix --module causal_conv1d_cuda --dry-run
  check "and its source entry" says "$project/pyproject.toml gets a source entry"
  check "fix" status_is 0 fix --module causal_conv1d_cuda --yes
  check "the project names the module" grep -q 'scankit-causal-conv1d-cuda = { path = ' "$project/pyproject.toml"
  check "the user's own lines stay" grep -q 'my own comment' "$project/pyproject.toml"
  check "so does the lock" grep -q 'name = "scankit-causal-conv1d-cuda"' "$project/uv.lock"
  check "uv sync keeps it" sh -c "cd '$project' && uv sync -q"
  check "it imports after that" "$env/bin/python" -c 'import torch, causal_conv1d_cuda'
  check "a new environment of the project has it" sh -c "cd '$project' && UV_PROJECT_ENVIRONMENT=other uv sync -q --python '$(fx_python)' && ls other/lib/python*/site-packages/causal_conv1d_cuda.abi3.so"
  check "the wheel is one that pip takes" "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q download --no-deps \
    --no-index -d "$work/taken" "$(echo "$project"/.scankit/wheels/*.whl)"
  check "uv's cache has its bytes" test "$(sha256sum <"$cached")" = "$before"
  rm -rf "$project/other"
  check "restore" status_is 0 restore
  check "takes it out of the project again" sh -c "cmp '$project/pyproject.toml' '$work/pyproject.toml' && cmp '$project/uv.lock' '$work/uv.lock'"
  whole >"$work/after"
  check "and out of the environment" diff "$work/before" "$work/after"
}

run_cases "$@"
