#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# record.sh SCANKIT [OUT]: records `run`, `fix` and `validate` on a real terminal, in an environment whose module was built
# for another torch, and writes one SVG and one text each. OUT is the pages' directory without one. About a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: ci/docs/record.sh SCANKIT [OUT]" >&2 && exit 2; }
scankit=$(readlink -f -- "$1") out=${2:-$here/pages/assets/sessions}
reader=$(fx_terminal_reader) || { echo "SKIP: pyte cannot be installed here (no network)" && exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$out"
ln -s "$scankit" "$work/bin/scankit"
venv=$(fx_scratch_env "$work/venv")
python=$venv/bin/python
# The function as torch had it up to 2.2; later releases have another second parameter.
cat >"$work/old.c" <<'C'
#include <Python.h>
int _ZN3c104cuda9SetDeviceEi(int);
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) { return PyLong_FromLong(_ZN3c104cuda9SetDeviceEi(0)); }
C
cc -shared -fPIC -I"$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')" "$work/old.c" \
  -o "$(fx_site "$python")/selective_scan_cuda$(fx_suffix "$python")" -Wl,--no-as-needed -L"$(fx_site "$(fx_torch_env)/bin/python")/torch/lib" -lc10
printf 'import torch, selective_scan_cuda\n\nprint("training")\n' >"$work/train.py"
"$reader/bin/python" -B "$here/record.py" "$work" "$(fx_torch_env)" "$out"
