#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# universal_matrix.sh TORCH PYTHON MODULES WORK: the modules of MODULES, the very files, under CPython PYTHON (3.9) and torch
# TORCH (2.0.1) in an environment made for them: their own tests on CPU tensors. 77 where one of the two is out of reach.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../ci/fixtures.sh"
torch=$1 minor=$2 modules=$3 work=$4
python=''
while read -r candidate; do
  if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$minor')"; then python=$candidate; fi
done < <(fx_every_python)
[ -n "$python" ] || { echo "SKIPPED: no CPython $minor here" && exit 77; }
rm -rf "${work:?}"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/env"
pip=("$work/env/bin/python" -m pip --disable-pip-version-check -q install --no-compile)
if [ "$minor" = 3.11 ] && [ "$torch" = "$FX_TORCH" ]; then
  fx_install_torch "$work/env"
elif [ "$minor" = 3.11 ] && [ -e "$SCANKIT_CACHE/wheels-$torch.ready" ]; then
  "${pip[@]}" --no-index --find-links "$(fx_far_torch "$torch")" "torch==$torch"
else # gigabytes that no other test wants: they are not kept
  TMPDIR=$work "${pip[@]}" --no-cache-dir --only-binary :all: "torch==$torch" || { echo "SKIPPED: pip could not fetch torch $torch" && exit 77; }
fi
export PYTHONPATH=$modules PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
run() { "$work/env/bin/python" "$@" >"$work/out" 2>&1 || { tail -n 30 "$work/out"; echo "FAILED: torch $torch, CPython $minor: $*"; exit 1; }; }
run "$here/universal_check.py"
cat "$work/out"
run "$here/selective_scan/binding_universal/module_test.py"
tail -n 3 "$work/out" | tr '\n' ' '
run "$here/selective_scan/binding_universal/tensors_test.py"
run "$here/causal_conv1d/binding_universal/module_test.py" --cases 40
run "$here/selective_scan/binding_vmamba/modules_test.py"
echo "torch $torch, CPython $minor: passed"
