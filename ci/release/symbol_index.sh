#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes doctor/torch_abi/symbol_index.bin, headers.bin and torch_releases.yaml anew from the torch wheels of the package index.
#   ci/release/symbol_index.sh BUILD_DIR [WORK_DIR]
# BUILD_DIR: a configured build tree. WORK_DIR (default: a folder in the cache) keeps what was read, some 5 MB a release,
# so that an interrupted run goes on where it was. One wheel at a time is downloaded, unpacked in part, read and removed:
# some 25 GB over the network, 6 GB on the disk.
# A new minor release: add its newest patch to RELEASES, earlier ones to PATCHES, and run this.
set -euo pipefail
cd "$(dirname "$0")/../.."
RELEASES='1.11.0 1.12.1 1.13.1 2.0.1 2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1
2.15.0'
# Of these the headers alone: a patch exports what its minor does, and now and then moves a line of a header.
PATCHES='1.12.0 1.13.0 2.0.0 2.1.0 2.1.1 2.2.0 2.2.1 2.3.0 2.4.0 2.5.0 2.7.0 2.9.0 2.12.0 2.14.0'
PLATFORMS=(manylinux1_x86_64 manylinux2014_x86_64 manylinux_2_17_x86_64 manylinux_2_28_x86_64)
PYTHON=${SCANKIT_PYTHON:-python3}

die() {
  printf 'symbol_index: %s\n' "$*" >&2
  exit 3
}
[ $# -ge 1 ] || die "usage: ci/release/symbol_index.sh BUILD_DIR [WORK_DIR]"
build=$1 work=${2:-${SCANKIT_CACHE:-$HOME/.cache/scankit-dev}/symbol_index}
mkdir -p "$work"

platform_options=()
for platform in "${PLATFORMS[@]}"; do platform_options+=(--platform "$platform"); done

# The one Python whose wheel is read: all Pythons of a release export the same names, but for some dozen of
# libtorch_python.
python_of() {
  case $1 in 1.* | 2.0.*) echo 3.10 ;; *) echo 3.11 ;; esac
}

# pip names every wheel that it passes over, so that asking for a release that does not exist lists them all.
[ -s "$work/links.txt" ] ||
  "$PYTHON" -m pip download -vv --no-deps --no-cache-dir --only-binary :all: -d "$work/none" 'torch==0.0.99' \
    > "$work/links.txt" 2>&1 || true

unpack() {
  local release=$1 folder=$2
  rm -rf "$folder" "$work/wheel"
  mkdir -p "$folder"
  "$PYTHON" -m pip download -q --no-cache-dir --no-deps --only-binary :all: --python-version "$(python_of "$release")" \
    "${platform_options[@]}" -d "$work/wheel" "torch==$release" || die "torch $release cannot be downloaded"
  # unzip's 11: some of the patterns matched nothing.
  unzip -q -o "$work"/wheel/*.whl 'torch/lib/libc10*' 'torch/lib/libtorch*' 'torch/lib/libshm*' 'torch/lib/libcaffe2*' \
    '*.dist-info/METADATA' 'torch/version.py' 'torch/include/*' \
    -d "$folder" || [ $? = 11 ]
  rm -rf "$work/wheel"
}

tool=$build/doctor/torch_abi/scankit_make_symbol_index
cmake --build "$build" --target scankit_make_symbol_index
facts=()
for release in $RELEASES; do
  minor=${release%.*}
  facts+=("$work/$release.facts")
  [ ! -s "$work/$release.facts" ] || continue
  unpack "$release" "$work/unpacked"
  grep -Eo "torch-${minor/./\\.}\.[0-9]+(-[0-9]+)?-cp[^ #()]*manylinux[^ #()]*x86_64\.whl" "$work/links.txt" |
    sort -u > "$work/unpacked/tags.txt" || die "pip lists no wheel of torch $minor"
  "$tool" --read "$work/unpacked" "$work/$release.facts"
  rm -rf "$work/unpacked"
done
for release in $PATCHES; do
  facts+=("$work/$release.headers")
  [ ! -s "$work/$release.headers" ] || continue
  unpack "$release" "$work/unpacked"
  "$tool" --headers "$work/unpacked" "$work/$release.headers"
  rm -rf "$work/unpacked"
done
"$tool" doctor/torch_abi/symbol_index.bin doctor/torch_abi/headers.bin doctor/torch_abi/torch_releases.yaml "${facts[@]}"
