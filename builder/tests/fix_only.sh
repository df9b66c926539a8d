#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a fix leaves alone: an environment in which nothing is broken, extensions that it cannot repair, distributions that came
# from no index, the user's build tools:
#   fix_only.sh SCANKIT [CASE...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
scankit=$1
shift
# shellcheck source=builder/tests/fix.sh
. "$here/fix.sh"
wheels=$(fx_wheels) || exit 77
export PIP_DISABLE_PIP_VERSION_CHECK=1
base=$(fx_torch_env)
fix() { "$scankit" fix --python "$env/bin/python" --arch compute_75 "$@"; }
freeze() { "$base/bin/python" -m pip --python "$env/bin/python" freeze --all | sort; }
untouched() { whole | cmp -s - "$work/before" && [ ! -e "$env/.scankit" ]; }

# extension FILE NAME [SYMBOL]: a Python module that needs torch's libc10 and, where SYMBOL is named, that of nobody.
extension() {
  local include torch
  include=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  torch=$(fx_site "$base/bin/python")/torch/lib
  cat >"$work/extension.c" <<C
#include <Python.h>
${3:+extern void $3(void);}
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "$2", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_$2(void) { ${3:+$3();} return PyModule_Create(&def); }
C
  gcc -shared -fPIC -I"$include" "$work/extension.c" -o "$1" -L"$torch" -Wl,--no-as-needed -lc10
}

case_healthy() {
  fx_scratch_env "$env" pth >/dev/null
  whole >"$work/before"
  check "without any Mamba there is nothing to do" status_is 0 fix --yes
  check "and it says so" says "nothing to do"
  check "and touches nothing" untouched
  extension "$(fx_site "$env/bin/python")/my_ext_C$(fx_suffix "$env/bin/python")" my_ext_C
  whole >"$work/before"
  check "nor beside an extension of somebody else's that works" status_is 0 fix --yes
  check "which is left alone" untouched
  check "asked for by name it is installed" status_is 0 fix --module causal_conv1d_cuda --yes
  check "and taken out again" status_is 0 restore
}

case_third_party() {
  local site
  fx_scratch_env "$env" pth >/dev/null
  site=$(fx_site "$env/bin/python")
  extension "$site/my_ext_C$(fx_suffix "$env/bin/python")" my_ext_C _ZN3c1017not_of_this_torchEv
  check "the interpreter agrees" sh -c "! '$env/bin/python' -c 'import torch, my_ext_C' 2>'$work/err' && grep -q 'undefined symbol' '$work/err'"
  whole >"$work/before"
  check "an extension of somebody else's that is broken is not healthy" status_is 1 fix --yes
  check "it is named" says "my_ext_C"
  check "and nothing is installed in its place" untouched
  printf '<!DOCTYPE html>' >"$site/causal_conv1d_cuda$(fx_suffix "$env/bin/python")"
  check "what can be repaired is, and the rest is no success" status_is 1 fix --yes
  check "the one" says 'repaired: `import causal_conv1d_cuda` works'
  check "the other" says "still broken: "
  check "works" "$env/bin/python" -c 'import torch, causal_conv1d_cuda'
}

# An index that has a my-ext 1.0 of its own, and notes who asks for it.
hostile_index() {
  mkdir -p "$work/served/simple/my-ext"
  printf '<a href="my_ext-1.0-py3-none-any.whl">my_ext-1.0-py3-none-any.whl</a>' >"$work/served/simple/my-ext/index.html"
  (cd "$work/served" && exec "$base/bin/python" -u -m http.server 0 --bind 127.0.0.1) >"$work/index.log" 2>&1 &
  index=$!
  trap 'kill "$index" 2>/dev/null || true; rm -rf "$work"' EXIT
  until grep -q 'port [0-9]' "$work/index.log"; do sleep 0.05; done
  PIP_INDEX_URL=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/index.log")/simple
  export PIP_INDEX_URL
}
nobody_asked() { ! grep -q my-ext "$work/index.log"; }

case_local_source() {
  local source="$work/my source"
  fx_scratch_env "$env" pth >/dev/null
  mkdir -p "$source/my_ext"
  echo 'import torch, my_ext_C' >"$source/my_ext/__init__.py"
  cat >"$source/ext.c" <<'C'
#include <Python.h>
#ifdef ANOTHER_TORCH
extern void _ZN3c1017not_of_this_torchEv(void);
#else
static void _ZN3c1017not_of_this_torchEv(void) {}
#endif
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "my_ext_C", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_my_ext_C(void) { _ZN3c1017not_of_this_torchEv(); return PyModule_Create(&def); }
C
  cat >"$source/setup.py" <<PY
import os, torch
from setuptools import Extension, setup
setup(name="my-ext", version="1.0", packages=["my_ext"],
      ext_modules=[Extension("my_ext_C", ["ext.c"], library_dirs=[os.path.dirname(torch.__file__) + "/lib"], libraries=["c10"],
                             extra_link_args=["-Wl,--no-as-needed"], define_macros=[(m, "1") for m in [os.environ.get("MACRO")] if m])])
PY
  hostile_index
  # What this build leaves in the folder is newer than every source: setuptools would take it for finished.
  MACRO=ANOTHER_TORCH "$base/bin/python" -m pip -q --python "$env/bin/python" install --no-deps --no-build-isolation "$source" >&2
  check "pip builds in the folder" test -d "$source/build"
  freeze >"$work/frozen"
  whole >"$work/before"
  check "it is broken" sh -c "! '$env/bin/python' -c 'import my_ext' 2>/dev/null"
  check "from its folder it is built and installed again" status_is 0 fix --module my_ext_C --yes
  check "by a command that names the folder" grep -q 'my-ext @ file:///.*/my%20source' "$work/out"
  check "it works" "$env/bin/python" -c 'import my_ext'
  freeze >"$work/frozen.after"
  check "no package is another" diff "$work/frozen" "$work/frozen.after"
  check "no index was asked for its name" nobody_asked
  check "restore" status_is 0 restore
  whole >"$work/after"
  check "takes it back" diff "$work/before" "$work/after"
  mv "$source" "$work/gone"
  check "without the folder it cannot be repaired" status_is 1 fix --module my_ext_C --yes
  check "and the reason is said" says "which no longer exists; no package index is used for it"
  check "nor was it now" nobody_asked
  unset PIP_INDEX_URL
}

# torch and what it needs, and no setuptools, wheel or packaging: these come for the build alone.
case_build_tools() {
  local name shared=$work/torch_only
  fx_scratch_env "$env" bare >/dev/null
  mkdir -p "$shared" "$work/index"
  for name in "$(fx_site "$base/bin/python")"/*; do
    case ${name##*/} in
      setuptools* | wheel* | packaging* | pkg_resources* | _distutils_hack* | distutils-precedence.pth | pip*) ;;
      *) ln -s "$name" "$shared/" ;;
    esac
  done
  echo "$shared" >"$(fx_site "$env/bin/python")/shared-torch.pth"
  # The pip of the Python below serves it, else one of its own; ensurepip of 3.11 and older brings setuptools too.
  if ! "$(fx_python)" -m pip --version >/dev/null 2>&1 && ! command -v uv >/dev/null; then
    "$env/bin/python" -m ensurepip >/dev/null
    "$env/bin/python" -m pip uninstall -q -y setuptools >/dev/null 2>&1 || true
  fi
  check "the environment has no setuptools" sh -c "! '$env/bin/python' -c 'import setuptools' 2>/dev/null"
  mkdir -p "$work/make/mamba-ssm-99.4/mamba_ssm" "$work/make/needed-1.0"
  echo 'import torch, needed, selective_scan_cuda; Mamba = torch.nn.Module' >"$work/make/mamba-ssm-99.4/mamba_ssm/__init__.py"
  printf 'import os, torch, packaging\nfrom setuptools import setup\nfrom wheel.bdist_wheel import bdist_wheel\nassert os.environ["MAMBA_SKIP_CUDA_BUILD"] == "TRUE"\nsetup(name="mamba-ssm", version="99.4", packages=["mamba_ssm"], install_requires=["needed"])\n' \
    >"$work/make/mamba-ssm-99.4/setup.py"
  : >"$work/make/needed-1.0/needed.py"
  printf 'from setuptools import setup\nsetup(name="needed", version="1.0", py_modules=["needed"])\n' >"$work/make/needed-1.0/setup.py"
  for name in mamba-ssm-99.4 needed-1.0; do
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "${name%-*}" "${name##*-}" >"$work/make/$name/PKG-INFO"
    tar -C "$work/make" -czf "$work/index/$name.tar.gz" "$name"
  done
  "$base/bin/python" -m pip -q wheel --no-deps --no-build-isolation --no-index -w "$work/index" "$work/index/needed-1.0.tar.gz"
  rm "$work/index/needed-1.0.tar.gz"
  freeze >"$work/frozen"
  export PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/index $wheels" TMPDIR=$work/tmp
  mkdir "$TMPDIR"
  # As with `user = true` in a pip.conf: a venv refuses to install for the user alone.
  export PIP_USER=1
  check "mamba-ssm is built" status_is 0 fix --package mamba-ssm --yes
  export PIP_USER=0
  check "and works, with nothing imported before it" "$env/bin/python" -c 'from mamba_ssm import Mamba'
  freeze >"$work/frozen.after"
  unset PIP_NO_INDEX PIP_FIND_LINKS
  { diff "$work/frozen" "$work/frozen.after" || true; } | sed -n 's/^[<>] \(.*\)[= ].*/\1/p' | sed 's/=*$//; s/ @.*//' | sort >"$work/changed"
  check "what changed is the package, what it needs, and the module below it" test "$(tr '\n' ' ' <"$work/changed")" = \
    "mamba-ssm needed scankit-selective-scan-cuda "
  check "and nothing is left of the tools" test -z "$(ls -d "$TMPDIR"/scankit* 2>/dev/null)"
}

# A module of another Python under this one's name: the check is that of pybind11 (PYBIND11_CHECK_PYTHON_VERSION), and the
# files alone do not tell.
case_another_python() {
  local other include file
  fx_scratch_env "$env" pth >/dev/null
  other=$(fx_other_python "$env/bin/python")
  [ -n "$other" ] || { echo "SKIPPED: no other Python here" && exit 77; }
  include=$("$other" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ -e "$include/Python.h" ] || { echo "SKIPPED: no headers of $other" && exit 77; }
  file=$(fx_site "$env/bin/python")/selective_scan_cuda$(fx_suffix "$env/bin/python")
  cat >"$work/other.c" <<'C'
#include <Python.h>
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  const char *compiled = TEXT(PY_MAJOR_VERSION) "." TEXT(PY_MINOR_VERSION), *running = Py_GetVersion();
  if (strncmp(running, compiled, strlen(compiled)) != 0)
    return PyErr_Format(PyExc_ImportError, "Python version mismatch: module was compiled for Python %s, but the interpreter version is incompatible: %s.",
                        compiled, running);
  return PyModule_Create(&def);
}
C
  gcc -shared -fPIC -I"$include" "$work/other.c" -o "$file"
  check "it does not import" sh -c "! '$env/bin/python' -c 'import torch, selective_scan_cuda' 2>'$work/err' && grep -q 'Python version mismatch' '$work/err'"
  whole >"$work/before"
  check "it is exchanged" status_is 0 fix --yes
  check "and ours works" "$env/bin/python" -c 'import torch, selective_scan_cuda as m; assert m.__file__.endswith(".abi3.so"), m.__file__'
  check "restore" status_is 0 restore
  whole >"$work/after"
  check "brings the other back" diff "$work/before" "$work/after"
}

run_cases "$@"
