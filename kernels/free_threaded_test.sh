#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# free_threaded_test.sh MODULES WORK: the modules of MODULES, the very files, under the suffix of a free-threaded Python with
# torch and numpy: $SCANKIT_FREE_THREADED_PYTHON. Many threads at once, then the modules' own tests. 77 without such a Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
modules=$1 work=$2 python=${SCANKIT_FREE_THREADED_PYTHON:-}
[ -n "$python" ] || { echo "SKIPPED: set SCANKIT_FREE_THREADED_PYTHON to a free-threaded Python with torch and numpy" && exit 77; }
"$python" -W ignore -c 'import sys, torch, numpy; sys.exit(sys._is_gil_enabled())' || { echo "SKIPPED: $python lacks torch or numpy, or has its GIL on" && exit 77; }
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
rm -rf "${work:?}"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
for file in "$modules"/*.abi3.so; do
  cp "$file" "$work/$(basename "$file" .abi3.so)$suffix"
done
export PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
"$python" "$here/threads_test.py" --free-threaded
"$python" "$here/universal_check.py"
"$python" "$here/selective_scan/binding_universal/module_test.py"
"$python" "$here/selective_scan/binding_universal/tensors_test.py"
"$python" "$here/causal_conv1d/binding_universal/module_test.py" --cases 40
"$python" "$here/selective_scan/binding_vmamba/modules_test.py"
