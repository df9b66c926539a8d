#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The torch flavor against another release of torch: torch_flavor_far.sh SCANKIT RELEASE|here WORK
# In an environment made for it from the index's wheels; "here": the environment of the tests. Prints one row of a table:
# torch, C++ standard, string ABI, seconds and peak memory of the compiler, result of validate.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/checks.sh"
scankit=$1 release=$2
command -v g++ >/dev/null || { echo "SKIPPED: no g++"; exit 77; }
unset VIRTUAL_ENV PYTHONPATH CXX
mkdir -p "$3"
trap 'rm -rf "$work" "$3"' EXIT
if [ "$release" = here ]; then
  python=${SCANKIT_TEST_PYTHON:-$(fx_torch_env)/bin/python}
  venv_beside "$python" "$3/env"
  release=$("$python" -c 'import torch; print(torch.__version__)')
else
  wheels=$(fx_far_torch "$release") || { echo "SKIPPED: pip could not fetch torch $release"; exit 77; }
  fx_scratch_env "$3/env" bare >/dev/null
  fx_pip_of "$(fx_pip_python)" -q --python "$3/env/bin/python" install --no-index --no-compile \
    --find-links "$wheels" "torch==$release" 'numpy<2'
  site=$(fx_site "$3/env/bin/python")
  suffix=$(fx_suffix "$3/env/bin/python")
fi
target=$3/env/bin/python
build() { status_is "$1" "${@:2}" "$scankit" build --flavor torch --python "$target" --arch compute_75 --cache-dir "$work/cache" --out "$work/made/"; }

# The compiler, measured: seconds of user time and peak memory of the one file.
cat >"$work/g++" <<'PROGRAM'
#!/usr/bin/env python3
import resource, subprocess, sys
status = subprocess.call(["g++"] + sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if "-c" in sys.argv:
    with open(__file__ + ".used", "w") as file:
        file.write(f"{used.ru_utime:.1f} s, {used.ru_maxrss / 1e6:.2f} GB")
sys.exit(status)
PROGRAM
chmod +x "$work/g++"
check "the module is built" build 0 env CXX="$work/g++"
grep -A 2 '^/' "$work/out"
row=$("$scankit" build --show-manifest "$work/made/selective_scan_cuda$suffix" |
  sed -n 's/^ *"\(c++ standard\|string abi\)": "\(.*\)",/\2/p' | paste -sd ' ')
check "doctor finds it healthy" sh -c "cp '$work/made/selective_scan_cuda$suffix' '$site/' && '$scankit' doctor --python '$target' --module selective_scan_cuda >/dev/null 2>&1"
check "it computes right" status_is 0 "$scankit" validate --python "$target" --module "$work/made/selective_scan_cuda$suffix" --quick --no-timing
result=$(grep -E '^(PASSED|FAILED)' "$work/out" || echo "no result")
for sibling in selective_scan_cuda_core selective_scan_cuda_oflex causal_conv1d_cuda; do
  check "$sibling is built" status_is 0 "$scankit" build --flavor torch --module $sibling --python "$target" --arch compute_75 \
    --cache-dir "$work/cache" --out "$work/made/"
done
modules() { PYTHONPATH=$work/made PYTHONDONTWRITEBYTECODE=1 "$target" "$here/../../kernels/$1"; }
check "the scan passes the universal module's tests" status_is 0 modules selective_scan/binding_universal/module_test.py
check "with tensors as they come" status_is 0 modules selective_scan/binding_universal/tensors_test.py
check "VMamba's modules, too" status_is 0 modules selective_scan/binding_vmamba/modules_test.py
check "the convolution, too" status_is 0 modules causal_conv1d/binding_universal/module_test.py

# A header of this torch changes: the reason is told, and the second build has other bytes under another key.
torch=$("$target" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
header=$torch/include/c10/core/Device.h
if [ "$(stat -c %h "$header")" = 1 ] && [[ $torch == "$3"/* ]]; then
  echo "// changed" >>"$header"
  check "a changed header is a miss" build 0 env CXX="$work/g++"
  check "that is named" says "c10/core/Device.h has changed"
  # Another minor release in its place: every name is there, so that only the module itself can tell.
  sed -i "s/^__version__ = .*/__version__ = '2.99.0'/" "$torch/version.py"
  check "another minor release of torch is refused" status_is 1 "$target" -c 'import torch, selective_scan_cuda'
  check "in words" says "was built for torch $release"
fi
echo "| torch | C++ and string ABI | compiler | validate |"
echo "| $release | $row | $(cat "$work/g++.used") | $result |"
end
