# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced: a conda prefix of packages of a channel in a folder, installed by py-rattler: the real solver, prefix, records and
# hard links. conda itself is not on the package index. For environments here (test_places_installers.py) and the builder's.
CONDA_TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$CONDA_TESTS/../../../ci/fixtures.sh"

# conda_channel WORD...: conda_channel.py's, with what it said in channel.txt
conda_channel() { "$(fx_installers)/bin/python" "$CONDA_TESTS/conda_channel.py" "$@" >channel.txt 2>&1 || { cat channel.txt && false; }; }

# conda_channel_of_demo CHANNEL PYTHON: the packages python, libdemo and demo-ext; its files are made in ./files
conda_channel_of_demo() {
  mkdir -p files
  cp "$2" files/python
  cp -L "$(dirname "$(dirname "$2")")"/lib/libpython3*.so.1.0 files/ 2>/dev/null || true
  patchelf --set-rpath "\$ORIGIN/../lib" files/python # as conda-build does
  echo 'int demo_answer(void) { return 42; }' | gcc -shared -fPIC -x c - -Wl,-soname,libdemo.so.2 -o files/libdemo.so
  gcc -shared -fPIC -O1 -w -I"$("$2" -c 'import sysconfig; print(sysconfig.get_path("include"))')" -x c - -x none -o files/demo.so \
    files/libdemo.so -Wl,-rpath,"\$ORIGIN/../../.." <<'C'
#define Py_LIMITED_API 0x03080000
#include <Python.h>
int demo_answer(void);
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "core", 0, -1};
PyMODINIT_FUNC PyInit_core(void) {
  PyObject* module = PyModule_Create(&definition);
  PyModule_AddIntConstant(module, "answer", demo_answer());
  return module;
}
C
  conda_channel make "$1" "$2" files
}

# conda_program FILE CHANNEL: a conda that knows `install --prefix`, from that channel
conda_program() {
  mkdir -p "$(dirname "$1")"
  cat >"$1" <<SH
#!/bin/sh
[ "\$1" = install ] || { echo "conda: \$*" >&2; exit 2; }
shift
if [ "\$1" = --yes ]; then shift; fi
[ "\$1" = --prefix ] || { echo "conda install \$*" >&2; exit 2; }
prefix=\$2; shift 2
exec "$(fx_installers)/bin/python" "$CONDA_TESTS/conda_channel.py" install "$2" "\$prefix" "\$@"
SH
  chmod +x "$1"
}
