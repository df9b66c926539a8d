#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# far_torch.sh RELEASE MODULES WORK: the wrapper's tests under another release of torch, in an environment made for them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
wheels=$(fx_far_torch "$1") && packages=$(fx_packages setuptools==75.1.0) || {
  echo "SKIPPED: pip could not fetch torch $1 or setuptools"
  exit 77
}
env=$(fx_scratch_env "$3/env" bare)
trap 'rm -rf "$3"' EXIT
fx_pip_of "$(fx_pip_python)" -q --python "$env/bin/python" install --no-index --no-compile \
  --find-links "$wheels" --find-links "$packages" "torch==$1" 'numpy<2' setuptools==75.1.0
PYTHONPATH=$2 PYTHONDONTWRITEBYTECODE=1 "$env/bin/python" "$here/wrapper_test.py"
