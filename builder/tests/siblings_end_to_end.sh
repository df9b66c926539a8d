#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build and fix of the other modules, in a real environment with a real torch:
#   siblings_end_to_end.sh SCANKIT PYTHON_WITH_TORCH
set -euo pipefail
scankit=$1
# shellcheck source=builder/tests/fix.sh
. "$(dirname "$0")/fix.sh"
python=${SCANKIT_TEST_PYTHON:-$2}
skip_without_torch "$python"
units=$(grep -c "^UNIT(" "$(dirname "$0")/../../kernels/selective_scan/cuda/units.def")

status=0
"$scankit" build --arch compute_75 --out "$work/made/" >"$work/out" 2>"$work/err" || status=$?
if [ "$status" = 5 ] && grep -q 'NVRTC (libnvrtc.so.12 or .13) not found' "$work/err"; then
  echo "SKIPPED: no NVRTC on this machine"
  exit 77
fi
check "a module that is not there is a usage error" status_is 2 "$scankit" build --module selective_scan
check "which names those that are" says causal_conv1d_cuda
for flavor in core oflex; do
  check "$flavor is built" status_is 0 "$scankit" build --module "selective_scan_cuda_$flavor" --arch compute_75 --out "$work/made/"
  check "from the images of the first" says "$units of $units"
done

venv_beside "$python" "$env"
imports() { "$env/bin/python" -c "import torch, $1 as m; print(m.__file__)" 2>/dev/null; }
modules=(causal_conv1d_cuda selective_scan_cuda_core selective_scan_cuda_oflex)
for module in "${modules[@]}"; do printf '<!DOCTYPE html><html>not found</html>' >"$site/$module$suffix"; done
old=$(state)
for module in "${modules[@]}"; do
  check "doctor sees that $module is broken" status_is 1 "$scankit" doctor --python "$env/bin/python" --module "$module" --no-import
  check "and names the command that repairs it" says "scankit fix --python $env/bin/python --module $module"
  check "which does" status_is 0 "$scankit" fix --python "$env/bin/python" --module "$module" --arch compute_75 --yes
  check "$module is imported from its place" test "$(imports "$module")" = "$site/$module.abi3.so"
  check "a second fix has nothing to do" status_is 0 "$scankit" fix --python "$env/bin/python" --module "$module" --arch compute_75 --yes
  check "and says so" says "nothing to do"
done
steps=0
while [ "$(state)" != "$old" ] && [ $steps -lt 3 ] && "$scankit" restore --python "$env/bin/python" >/dev/null 2>&1; do
  steps=$((steps + 1))
done
check "three restores go back" test $steps = 3
check "to the start, byte by byte" test "$(state)" = "$old"
end
