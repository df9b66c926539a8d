#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scankit build --flavor torch against the torch of an environment: torch_flavor.sh SCANKIT PYTHON_WITH_TORCH
# With the module of the fewest device images; torch_flavor_far.sh has the others.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
python=${SCANKIT_TEST_PYTHON:-$2}
skip_without_torch "$python"
real=$(command -v g++) || { echo "SKIPPED: no g++"; exit 77; }
unset VIRTUAL_ENV PYTHONPATH CXX
env=$work/env
venv_beside "$python" "$env"
target=$env/bin/python
# flavor STATUS [VARIABLE=VALUE...]: builds for $target
flavor() { status_is "$1" env "${@:2}" "$scankit" build --flavor torch --module causal_conv1d_cuda --python "$target" --arch compute_75 --cache-dir "$work/cache" --out "$work/made/"; }

# compiler NAME WORDS...: a g++ in a folder of its own that runs the real one with WORDS added; $also runs before.
compiler() {
  mkdir -p "$work/$1"
  printf '#!/bin/sh\n%s\nexec %s "$@" %s\n' "${also:-}" "$real" "${*:2}" >"$work/$1/g++"
  chmod +x "$work/$1/g++"
}
check "another flavor is a usage error" status_is 2 "$scankit" build --flavor pybind
check "that names those that there are" says "universal and torch"
mkdir "$work/nothing"
check "a compiler that is not there" flavor 5 CXX=/nowhere/g++
check "is named" says "CXX selects the compiler /nowhere/g++"
check "no compiler at all" flavor 5 PATH="$work/nothing"
check "is told with what to install" says "build-essential"
compiler old -U__GNUC__ -D__GNUC__=8
check "a compiler older than torch's headers take" flavor 5 PATH="$work/old"
check "is told so" says "torch's headers need gcc 9 or newer"
check "and by CXX, too" flavor 5 CXX="$work/old/g++"
compiler standard -U__cplusplus -D__cplusplus=201402L
check "a compiler without the standard" flavor 5 PATH="$work/standard"
check "is told which one is demanded" says "need C++"
abi=$("$target" -c 'import torch; print(int(torch.compiled_with_cxx11_abi()))')
compiler abi -U_GLIBCXX_USE_CXX11_ABI "-D_GLIBCXX_USE_CXX11_ABI=$((1 - abi))"
check "a compiler of the other string ABI" flavor 5 PATH="$work/abi"
check "is told so before anything is compiled" says "string ABI that torch is built with"
# shellcheck disable=SC2016  # for the wrapper's shell
also='case "$*" in *" -c "*) kill -9 $$ ;; esac' compiler killed
check "a compiler that the kernel kills" flavor 5 PATH="$work/killed:$PATH"
check "is told with the likely reason" says "probably for lack of memory"
# shellcheck disable=SC2016
also='case "$*" in *" -c "*) exec '$real' "$@" -std=c++11 ;; esac' compiler failing
check "headers that do not compile" flavor 5 PATH="$work/failing:$PATH"
check "are told in the compiler's own words" says "#error"
check "in a few lines" test "$(wc -l <"$work/err")" -lt 20
check "and nothing is left behind" test ! -e "$work/made"

# other_torch [WITHOUT]: the environment sees a torch of links to the real one, without one of its entries.
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
other_torch() {
  rm -rf "$site/torch" && mkdir "$site/torch"
  ln -s "$torch"/* "$site/torch/"
  [ $# = 0 ] || rm "$site/torch/$1"
}
other_torch include
check "a torch without its headers" flavor 5
check "is told so" says "do not say which C++ they need"
other_torch lib
mkdir "$site/torch/lib" && ln -s "$torch"/lib/* "$site/torch/lib/" && rm "$site/torch/lib/libc10.so" && echo >"$site/torch/lib/libc10.so"
check "a torch whose string ABI cannot be read" flavor 5
check "is not guessed at" says "the string ABI of torch"
other_torch version.py
sed "s/^cuda.*=.*/cuda = '11.8'/" "$torch/version.py" >"$site/torch/version.py"
check "a torch of another CUDA than every NVRTC here" flavor 5
check "is told so" says "this torch is built with CUDA 11.8"
rm -rf "$site/torch"
rm "$site/torch.pth"
check "an environment without torch" flavor 5
check "is told what needs none" says "without --flavor torch"
"$python" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/torch.pth"

# An interpreter as a distribution ships it without its -dev package: all but the headers.
base=$("$python" -c 'import sys; print(sys.base_prefix)')
version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$work/base/bin" "$work/base/lib"
cp "$(readlink -f "$python")" "$work/base/bin/$version"
cp -rs "$base/lib/$version" "$work/base/lib/"
for data in "$work/base/lib/$version"/_sysconfigdata_*.py; do
  sed "s|'INCLUDEPY': .*|'INCLUDEPY': '/nowhere',|" "$(readlink -f "$data")" >"$data.new" && mv "$data.new" "$data"
done
target=$work/base/bin/$version
packages=$("$target" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') # Debian's is no lib/python*/site-packages
mkdir -p "$packages"
cp "$site/torch.pth" "$packages/"
check "a Python without its headers" flavor 5
check "is told which file is missing" says "needs Python.h"
target=$env/bin/python

check "the module is built" flavor 0
module=$work/made/causal_conv1d_cuda$suffix
check "under the name that this Python wants" test -s "$module"
check "what it was built for is told" says "string ABI) and Python"
check "and stands in its manifest" status_is 0 "$scankit" build --show-manifest "$module"
check "with the flavor" says '"flavor": "torch"'
cp "$module" "$work/first.so"
check "a second build" flavor 0
check "comes from the cache" says "is in the cache"
check "with the same bytes" cmp "$module" "$work/first.so"
cp "$module" "$site/"
check "doctor finds it healthy" status_is 0 "$scankit" doctor --python "$target" --module causal_conv1d_cuda
check "it tells its flavor" "$target" -c 'import torch, causal_conv1d_cuda as m; assert m.scankit_info()["flavor"] == "torch"'
check "and computes right" status_is 0 "$scankit" validate --python "$target" --module "$module" --quick --no-timing
end
