#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# universal_roots.sh SUITE MODULES WORK: the modules of MODULES, the very files, in a root file system of Debian's SUITE, with
# its own glibc and Python: bullseye 2.31, trixie 2.41, sid 2.43. torch is not what is tested, and is none there: each module
# loads with every symbol bound at once, says what it is, and says that torch is missing where a call needs it. 77 without
# root or debootstrap.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../ci/fixtures.sh"
suite=$1 modules=$2 work=$3
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "SKIPPED: needs root and debootstrap" && exit 77; }
root=$work/root
mkdir -p "$work"
trap 'rm -rf "${work:?}"' EXIT
debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib "$suite" "$root" >"$work/log" 2>&1 ||
  { tail -n 3 "$work/log" && echo "SKIPPED: debootstrap cannot make $suite" && exit 77; }
mkdir "$root/modules"
cp "$modules"/*.abi3.so "$root/modules/"
cat >"$root/modules/check.py" <<'PY'
import importlib, os, platform, sys
sys.path.insert(0, "/modules")
for name in ("selective_scan_cuda", "selective_scan_cuda_core", "selective_scan_cuda_oflex", "causal_conv1d_cuda"):
    module = importlib.import_module(name)
    assert module.scankit_info()["instruction_set"] in ("portable", "avx2", "avx512")
    try:
        (module.causal_conv1d_fwd if "conv" in name else module.fwd)(*[None] * 9)
        sys.exit("a call without torch")
    except (ImportError, TypeError) as error:
        print(name, "-", type(error).__name__, error)
print("CPython", platform.python_version(), os.confstr("CS_GNU_LIBC_VERSION"))
PY
chroot "$root" env LD_BIND_NOW=1 PYTHONDONTWRITEBYTECODE=1 python3 /modules/check.py
