#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lock of what scankit's own repair brings, by the real index: mamba-ssm, of which there are only sources, and tokenizers, whose
# WHEEL has several tags in one line. Each export can be made, and installs the same files:  lock_sources.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/../../builder/tests/checks.sh"
mamba=$(fx_python_wheel mamba-ssm 2.3.2.post1) || { echo "SKIPPED: mamba-ssm cannot be had here" && exit 77; }
tools=$(fx_installers) || { echo "SKIPPED: no uv" && exit 77; }
unset VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PIP_REQUIRE_HASHES
export XDG_CACHE_HOME=$work/cache
"$(fx_python)" -m venv "$work/env"
python=$work/env/bin/python
site=$(fx_site "$python")
mkdir "$work/project" && cd "$work/project"
"$python" -m pip install -q --no-deps tokenizers==0.20.3 || { echo "SKIPPED: the index cannot be reached" && exit 77; }
# As pip leaves it behind that has built it from the index's archive: no direct_url.json.
"$python" -m pip install -q --no-deps --no-index --find-links "$(dirname "$mamba")" mamba-ssm==2.3.2.post1
grep -q '^Tag: [^ ]*\.' "$site"/tokenizers-0.20.3.dist-info/WHEEL || echo "note: this wheel has no line of several tags"
locked() { "$python" -c 'import json, sys; d = {d["name"]: d for d in json.load(open("scankit.lock"))["distributions"]}; print(eval(sys.argv[1]))' "$1"; }
trial() { # NAME
  check "$1: lock" status_is 0 "$scankit" env lock --python "$python"
  check "$1: the wheel of tokenizers is the index's" test "$(locked 'd["tokenizers"]["source"], d["tokenizers"]["artifact"]["file"].startswith("tokenizers-0.20.3-cp")')" = "('index', True)"
  check "$1: mamba-ssm is what was built" test "$(locked 'd["mamba-ssm"]["source"], d["mamba-ssm"]["artifact"]["file"][-4:]')" = "('here', '.whl')"
  for format in requirements pylock dockerfile conda; do
    check "$1: export $format" status_is 0 "$scankit" env export $format --python "$python" --out "$1/$format"
  done
  cp scankit.lock "$1.lock"
  rm scankit.lock
}
trial pip
PATH=$tools/bin:$PATH trial uv
check "pip and uv lock the same" test "$(sed 's/ *"url".*//' pip.lock | grep -c sha256)" = "$(sed 's/ *"url".*//' uv.lock | grep -c sha256)"
"$(fx_python)" -m venv "$work/again"
check "pip installs it again" status_is 0 "$work/again/bin/python" -m pip install -q --no-deps --require-hashes -r pip/requirements
again=$(fx_site "$work/again/bin/python")
check "the same package" diff -r -x __pycache__ "$site/mamba_ssm" "$again/mamba_ssm"
check "and the same library" diff -r -x __pycache__ "$site/tokenizers" "$again/tokenizers"
"$(fx_python)" -m venv --without-pip "$work/third"
cp uv/pylock uv/pylock.toml
check "uv installs its pylock.toml" status_is 0 "$tools/bin/uv" pip sync --preview --python "$work/third/bin/python" uv/pylock.toml
check "the same package, too" diff -r -x __pycache__ "$site/mamba_ssm" "$(fx_site "$work/third/bin/python")/mamba_ssm"
end
