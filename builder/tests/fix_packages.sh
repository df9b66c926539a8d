#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repairs that run the user's own installer, and environments that an installer keeps:
#   fix_packages.sh SCANKIT [CASE...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults_packages.sh
. "$here/../../doctor/tests/e2e/faults_packages.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/checks.sh"
scankit=$1
shift
unset VIRTUAL_ENV PYTHONPATH
wheels=$(fx_wheels) || exit 77
export XDG_CACHE_HOME=${SCANKIT_FIX_CACHE:-$work/cache}
env=$work/env
whole() {
  (cd "$env" && find . -name __pycache__ -prune -o -path ./.scankit -prune -o \( -type f -o -type l \) -printf '%p %y %m %s %l\n' | sort)
}
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
  check "restore" status_is 0 "$scankit" restore --python "$env/bin/python"
  check "says what was run" says "mamba-ssm==2.3.1"
  whole >"$work/after"
  check "takes all of it back" diff "$work/before" "$work/after"
  check "other packages are not ours to choose" status_is 2 fix --package flash-attn --yes
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
    sleep 1 # the installer dies with it, and holds the lock until then
    check "killed at '$word': restore" status_is 0 "$scankit" restore --python "$env/bin/python"
    whole >"$work/after"
    check "killed at '$word': the old packages" diff "$work/before" "$work/after"
  done
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

fx_make_installers() { "$(fx_python)" -m venv "$1" && "$1/bin/python" -m pip --disable-pip-version-check -q install uv==0.13.9 py-rattler==0.28.0; }
case_uv_project() {
  local uv site project=$work/project
  uv=$(fx_once "$SCANKIT_CACHE/envs/installers-1" fx_make_installers)/bin/uv || exit 77
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
  check "restore" status_is 0 "$scankit" restore --python "$env/bin/python"
  check "takes it out of the project again" sh -c "cmp '$project/pyproject.toml' '$work/pyproject.toml' && cmp '$project/uv.lock' '$work/uv.lock'"
  whole >"$work/after"
  check "and out of the environment" diff "$work/before" "$work/after"
}

cases=("$@")
[ $# -gt 0 ] || mapfile -t cases < <(declare -F | sed -n 's/^declare -f case_//p')
for name in "${cases[@]}"; do
  echo "-- $name"
  "case_$name"
done
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
