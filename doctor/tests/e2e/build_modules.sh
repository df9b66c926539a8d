#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_modules.sh OUT [other]: compiles the objects that the fault makers link in their wrong ways; with `other` only
# those of the other torch.
#   binding.o scan.o              against the installed torch
#   binding-other.o scan-other.o  against another torch release's headers
#   binding-oldabi.o              against the installed torch, with the old string ABI
#   conv7.o conv8.o               causal_conv1d_cuda of two times, against the installed torch
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../../ci/fixtures.sh"
out=$1
mkdir -p "$out"

python_include=$("$(fx_python)" -c 'import sysconfig; print(sysconfig.get_path("include"))')
other=$(fx_headers_of_other_torch)/torch
compiler=(g++)
command -v ccache >/dev/null && compiler=(ccache g++)

compile() { # OBJECT SOURCE TORCH [FLAG...]
  local object=$1 source=$2 headers=$3
  shift 3
  "${compiler[@]}" -std=c++20 -O1 -fPIC -w "$@" -I"$python_include" -isystem "$headers/include" \
    -isystem "$headers/include/torch/csrc/api/include" -c "$here/module/$source" -o "$out/$object"
}

compile binding-other.o binding.cc "$other" &
compile scan-other.o scan.cc "$other" &
wait -n && wait -n
[ "${2:-}" != other ] || exit 0
torch=$(fx_site "$(fx_torch_env)/bin/python")/torch
compile binding.o binding.cc "$torch" &
compile scan.o scan.cc "$torch" &
wait -n && wait -n
compile binding-oldabi.o binding.cc "$torch" -D_GLIBCXX_USE_CXX11_ABI=0
for arguments in 7 8; do
  compile conv$arguments.o conv.cc "$torch" -DARGUMENTS=$arguments -DTORCH_EXTENSION_NAME=causal_conv1d_cuda
done
gcc -O1 -fPIC -c "$here/module/runtime.c" -o "$out/runtime.o"
gcc -O1 -fPIC -c "$here/module/newer_glibc.c" -o "$out/newer_glibc.o"
