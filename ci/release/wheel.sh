#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel that users install, made by pip as they would make it, and judged by auditwheel and abi3audit.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: ci/release/wheel.sh [--arch LIST] [--modules DIR] [--build DIR] [--out DIR] [-- BUILD_ARGUMENT...]
  --arch LIST    with device code for these (release, all, or sm_90,...): the modules are built first, by the scankit that
                 the wheel holds, with BUILD_ARGUMENT (--python P, --toolchain T)
  --modules DIR  with the finished modules of this folder instead
  --build DIR    the build tree (default: build/wheel); kept, so a second run is incremental
  --out DIR      where the wheel goes (default: build/dist)
TEXT
}
cd "$(dirname "$0")/../.."
arch='' modules='' build=build/wheel out=build/dist more=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=$2 && shift ;;
    --modules) modules=$2 && shift ;;
    --build) build=$2 && shift ;;
    --out) out=$2 && shift ;;
    --) shift && more=("$@") && break ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
# shellcheck source=ci/fixtures.sh
. ci/fixtures.sh
mkdir -p "$build" "$out"
build=$(cd "$build" && pwd) out=$(cd "$out" && pwd)
[ -z "$modules" ] || modules=$(cd "$modules" && pwd)

make_wheel() { # OPTION...
  rm -f "$out"/scankit-*.whl
  fx_pip_of "$(fx_pip_python)" wheel . --no-deps -w "$out" -C build-dir="$build/tree" "$@" \
    >"$build/pip.log" 2>&1 || { tail -n 40 "$build/pip.log" >&2 && exit 1; }
}

make_wheel -C cmake.define.SCANKIT_RELEASE_MODULES="$modules"
if [ -n "$arch" ]; then
  modules=$build/modules
  for module in selective_scan_cuda causal_conv1d_cuda; do
    "$build/tree/scankit" build --arch "$arch" --module "$module" --out "$modules/" ${more[@]+"${more[@]}"}
  done
  make_wheel -C cmake.define.SCANKIT_RELEASE_MODULES="$modules"
fi

wheel=$(echo "$out"/scankit-*.whl)
tools=$(fx_wheel_tools)
"$tools/bin/auditwheel" show "$wheel" | tr '\n' ' ' >"$build/auditwheel.txt"
case $wheel in *-py3-none-manylinux_2_17_x86_64.whl) ;; *) fx_die "the wheel is called $(basename "$wheel")" ;; esac
grep -q 'consistent with the following platform tag: "manylinux_2_17_x86_64"' "$build/auditwheel.txt" ||
  fx_die "auditwheel: $(cat "$build/auditwheel.txt")"
"$tools/bin/abi3audit" -v --strict --assume-minimum-abi3 3.8 "$wheel" >"$build/abi3audit.txt" 2>&1 ||
  fx_die "abi3audit: $(cat "$build/abi3audit.txt")"
printf '%s\n  %s bytes; auditwheel: manylinux_2_17; abi3audit: %s\n' "$wheel" "$(stat -c %s "$wheel")" \
  "$(tr -s ' \n' ' ' <"$build/abi3audit.txt" | grep -oE '[0-9]+ extensions scanned')"
