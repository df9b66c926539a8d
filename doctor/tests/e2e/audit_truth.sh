#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# audit_truth.sh SCANKIT WORK [LOADER_TEST]: `scankit doctor --all` against the real interpreter, in an environment with many compiled
# packages: every extension is imported in a process of its own, below its package, and each answer of the audit is held
# to what happened. Then extensions are broken by real mechanisms and all is compared again. Prints the tables; fails on
# a single "loads" that fails or "would fail" that loads. SCANKIT_AUDIT_ENV names a venv to use instead of making one;
# it is changed during the run and put back.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$tests/../../../ci/fixtures.sh"
scankit=$(realpath "$1") work=$2/audit_truth
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)

PACKAGES='numpy scipy pandas pyarrow scikit-learn torch torchvision torchaudio opencv-python-headless xgboost lightgbm
  matplotlib pillow h5py numba polars lxml cryptography psutil grpcio zstandard tokenizers safetensors orjson
  sentencepiece scikit-image statsmodels shapely pydantic aiohttp regex'
make_many() {
  "$(fx_python)" -m venv "$1"
  # shellcheck disable=SC2086
  "$1/bin/python" -m pip --disable-pip-version-check -q install $PACKAGES
}
env=${SCANKIT_AUDIT_ENV:-$(fx_once "$SCANKIT_CACHE/envs/many" make_many)}
python=$env/bin/python
site=$(fx_site "$python")

# compare NAME: audits, imports, prints the table; the differences are in WORK/NAME.differences.
compare() {
  local name=$1
  "$scankit" doctor --all --no-import --json --python "$python" >"$work/$name.json" 2>"$work/$name.err" || [ $? -ne 2 ]
  "$python" "$tests/audit_truth.py" "$work/$name.json" "$work/$name.truth" >"$work/$name.import.log" 2>&1 ||
    { tail -n 5 "$work/$name.import.log" >&2; exit 1; }
  "$python" "$tests/audit_truth.py" --table "$work/$name.truth" | tee "$work/$name.table"
}
wrong() { "$python" "$tests/audit_truth.py" --wrong "$work/$1.truth"; }

echo "as installed:"
compare healthy
[ -z "$(wrong healthy)" ] || { wrong healthy >&2; exit 1; }

moved=()
put_back() { for file in "${moved[@]}"; do rm -rf "$file" && mv "$file.away" "$file"; done; }
trap put_back EXIT
away() { # FILE: out of the way; what comes in its place is removed at the end
  mv "$1" "$1.away"
  moved+=("$1")
}
first() { find "$site" -path "$site/$1" -not -name '*.away' | sort | head -n 1; }

# A library that the wheel brought is lost, one is of another build, a file is cut, one is an old torch's, one is of
# another processor, one is a leftover of another Python, one needs a glibc that is not there.
away "$(first 'pillow.libs/libopenjp2*')"
away "$(first 'scipy.libs/libgfortran*')"
away "$(first 'h5py/_errors.*.so')"
head -c 20000 "$site/h5py/$(basename "${moved[2]}").away" >"${moved[2]}"
away "$(first 'lxml/etree.*.so')"
: >"${moved[3]}"
suffix=$(fx_suffix "$python")
cat >"$work/broken.c" <<'C'
#ifdef OLD_TORCH
extern void _ZN3c105ErrorC1ENS_14SourceLocationESs(void);
#define MISSING _ZN3c105ErrorC1ENS_14SourceLocationESs
#else
extern void PyOld_Gone(void);
#define MISSING PyOld_Gone
#endif
void* PyInit_broken(void) { MISSING(); return 0; }
C
mkdir -p "$site/scankit_broken/a" "$site/scankit_broken/b" "$site/scankit_broken/c"
trap 'put_back; rm -rf "$site/scankit_broken"' EXIT
touch "$site/scankit_broken/__init__.py" "$site"/scankit_broken/{a,b,c}/__init__.py
gcc -shared -fPIC "$work/broken.c" -o "$site/scankit_broken/a/broken$suffix"
gcc -shared -fPIC -DOLD_TORCH "$work/broken.c" -o "$site/scankit_broken/b/broken$suffix" \
  -Wl,--no-as-needed -L"$site/torch/lib" -lc10
# What a package's own __init__ loads by ctypes is found then, and only then.
echo 'int helper(void) { return 1; }' >"$work/helper.c"
mkdir -p "$site/scankit_broken/libs"
gcc -shared -fPIC "$work/helper.c" -Wl,-soname,libscankit_helper.so -o "$site/scankit_broken/libs/libscankit_helper.so"
echo 'int helper(void); void* PyInit_broken(void) { helper(); return 0; }' >"$work/needs.c"
gcc -shared -fPIC "$work/needs.c" -o "$site/scankit_broken/c/broken$suffix" "$site/scankit_broken/libs/libscankit_helper.so"
cat >"$site/scankit_broken/c/__init__.py" <<'PY'
import ctypes, os
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "..", "libs", "libscankit_helper.so"))
PY
echo "broken:"
compare broken
[ -z "$(wrong broken)" ] || { wrong broken >&2; exit 1; }
failing=$("$python" "$tests/audit_truth.py" --count would-fail fails "$work/broken.truth")
[ "$failing" -ge 6 ] || { echo "FAIL: only $failing of the broken extensions fail and are said to" >&2; exit 1; }
put_back
trap - EXIT
rm -rf "$site/scankit_broken"
[ $# -ge 3 ] || { echo "ok: audit_truth"; exit 0; }
echo "names bound by the loader:"
SCANKIT_LOADER_PYTHON=$python SCANKIT_LOADER_GLOBAL=$site/torch/lib/libtorch_global_deps.so \
  SCANKIT_LOADER_CODE='import torch, torchvision, scipy.linalg, scipy.sparse.linalg, pandas, pyarrow, sklearn, cv2, PIL.Image, h5py, xgboost, lightgbm, matplotlib.pyplot, lxml.etree, grpc' \
  SCANKIT_TEST_PYTHON=$python "$3" --gtest_filter='*WhatTheCallerNames'
echo "ok: audit_truth"
