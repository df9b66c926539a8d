#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# other_abi.sh SCANKIT WORK: real sources, compiled by the headers of several torch releases with the string ABI that the
# wheels of that release do not have, and dated: the release must be inside. Conda and vendors build 2.4 so, a set-up
# script with a flag of its own the later ones.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$here/expect.sh"
scankit=$1 work=$2/other_abi
rm -rf "$work" && mkdir -p "$work/sources"
cd "$work"
python=$(fx_torch_env)/bin/python
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
compiler=(g++)
command -v ccache >/dev/null && compiler=(ccache g++)

archive() { # PROJECT VERSION: its sources, from the index
  local archives=$SCANKIT_CACHE/sdists file=${1//-/_}-$2
  [ -e "$archives/$file.tar.gz" ] ||
    MAMBA_SKIP_CUDA_BUILD=TRUE CAUSAL_CONV1D_SKIP_CUDA_BUILD=TRUE "$python" -m pip --disable-pip-version-check -q download \
      --no-deps --no-binary :all: --no-build-isolation -d "$archives" "$1==$2"
  tar -xf "$archives/$file.tar.gz" -C sources
}
archive mamba-ssm 2.2.5
archive causal-conv1d 1.5.2
archive torch-scatter 2.1.2
declare -A files=(
  [binding]=$here/module/binding.cc
  [selective_scan_cuda]=sources/mamba_ssm-2.2.5/csrc/selective_scan/selective_scan.cpp
  [causal_conv1d_cuda]=sources/causal_conv1d-1.5.2/csrc/causal_conv1d.cpp
  [torch_scatter]=sources/torch_scatter-2.1.2/csrc/scatter.cpp
)

dated=0
build_and_date() { # NAME TORCH HEADERS ABI WORD
  local file=$1-$2-$4.so
  # The sources of a CUDA extension include the runtime's headers; no kernel is needed for its names.
  "${compiler[@]}" -std=c++17 -O0 -fPIC -w -shared -DTORCH_EXTENSION_NAME="$1" -DTORCH_API_INCLUDE_EXTENSION_H \
    -D_GLIBCXX_USE_CXX11_ABI="$4" -I"$include" -isystem "$3/include" -isystem "$3/include/torch/csrc/api/include" \
    -I/usr/local/cuda/include "${files[$1]}" -o "$file"
  "$scankit" doctor --so "$file" --no-import --json >"$file.json" 2>"$file.err" || true
  expect_dated "$file.json" "$file" "$2" "$5"
  dated=$((dated + 1))
}

for release in 2.4.1:1:new 2.7.1:0:old 2.11:0:old; do
  IFS=: read -r version abi word <<<"$release"
  case $version in
    "${FX_TORCH%.*}") headers=$(fx_site "$python")/torch ;;
    *) headers=$(fx_torch_headers "$version")/torch ;;
  esac
  for name in "${!files[@]}"; do
    case $name in
      binding | torch_scatter) ;;
      *) [ -e /usr/local/cuda/include/cuda_runtime.h ] || continue ;;
    esac
    build_and_date "$name" "$(cut -d . -f 1,2 <<<"$version")" "$headers" "$abi" "$word"
  done
done
echo "ok: $dated files dated"
