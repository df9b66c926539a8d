# SPDX-License-Identifier: Apache-2.0
"""Modules that were compiled for another Python, or for another release of a C interface than the one that runs."""
import shutil

from environment import MODULE, plain_module, stub_library
from fault import Fault, fault
from fixtures import include_of, run, shell, shell_or_skip, suffix_of
from faults_files import NO_INIT, NO_MODULE


# A file compiled for another interpreter, copied beside the package that needs it.
@fault()
def python_abi_tag_mismatch(env):
    other = shell("fx_other_python", env.python)
    suffix, python = ".cpython-310-x86_64-linux-gnu.so", env.python
    if other:
        suffix = suffix_of(other)
        if (include_of(other) / "Python.h").exists():
            python = other
    plain_module(env.site / (MODULE + suffix), python, "plain.c")
    env.install_mamba()
    return Fault(root="python_abi_tag_mismatch", error=NO_MODULE, log="module_not_built")


def tagged(env, tag):
    """A module under another interpreter's suffix, which this one does not look at."""
    env.plain_module(env.site / f"{MODULE}.{tag}.so", "plain.c")
    env.install_mamba()
    return Fault(root="python_abi_tag_mismatch", error=NO_MODULE, log="module_not_built")


# An interpreter of the same name with other structures: a debug build counts references in every call.
@fault(matrix=True)
def python_debug_build(env):
    return tagged(env, "cpython-311d-x86_64-linux-gnu")


@fault(matrix=True)
def python_free_threaded(env):
    return tagged(env, "cpython-313t-x86_64-linux-gnu")


@fault(matrix=True)
def python_pypy(env):
    return tagged(env, "pypy310-pp73-x86_64-linux-gnu")


# Built on Alpine: its C library is another, and its interpreter another file.
@fault(matrix=True)
def python_of_musl_by_tag(env):
    return tagged(env, "cpython-311-x86_64-linux-musl")


@fault(matrix=True)
def python_of_musl_by_library(env):
    musl = stub_library(env.beside("stub"), "libc.musl-x86_64.so.1", "strlen")
    env.plain_module(env.module_file, "plain.c", "-nostdlib", "-Wl,--no-as-needed", musl)
    shutil.rmtree(env.beside("stub"))
    return Fault(root="python_abi_tag_mismatch", error="libc.musl-x86_64.so.1: cannot open shared object file")


@fault(matrix=True)
def python_debug_names(env):
    env.plain_module(env.module_file, text=f"""
#include <Python.h>
PyObject* PyModule_Create2TraceRefs(struct PyModuleDef*, int);
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{MODULE}", 0, -1, 0}};
PyMODINIT_FUNC PyInit_{MODULE}(void) {{ return PyModule_Create2TraceRefs(&definition, 1013); }}
""")
    return Fault(root="python_abi_tag_mismatch", error="undefined symbol: PyModule_Create2TraceRefs")


# "Renaming it does not help": a plain .so is taken by every Python, and this one asks for a function that came later.
@fault()
def python_of_later_release(env):
    # A function of 3.13, or where that is what runs here, of 3.14.
    later = run(env.python, "-c", 'import sys; print("PyUnicode_Equal" if sys.version_info >= (3, 13) else "PyList_GetItemRef")').strip()
    env.plain_module(env.site / f"{MODULE}.so", text=f"""
#include <Python.h>
PyObject* {later}(PyObject*, Py_ssize_t);
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{MODULE}", 0, -1, 0}};
PyMODINIT_FUNC PyInit_{MODULE}(void) {{
  PyObject* list = PyList_New(0);
  {later}(list, 0);
  return PyModule_Create(&definition);
}}
""")
    return Fault(root="python_abi_tag_mismatch", error=f"undefined symbol: {later}")


@fault(matrix=True)
def python_linked_with_libpython(env):
    env.needs_library("libpython3.10.so.1.0", "Py_GetCompiler")
    # Where no frame shows which Python runs, the line is that of a Python whose own library no loader finds as well.
    return Fault(root="python_abi_tag_mismatch", error="libpython3.10.so.1.0: cannot open shared object file", log="system_library_missing")


@fault(matrix=True)
def python_2_module(env):
    env.plain_module(env.module_file, text=f"void init{MODULE}(void) {{}}\n")
    return Fault(root="python_abi_tag_mismatch", error=NO_INIT, log="variant_name_mismatch")


# Compiled with numpy 1's headers, run with numpy 2: the file is whole and every name is there.
@fault()
def numpy_abi(env):
    numpy = shell_or_skip("numpy_1", file="doctor/tests/e2e/packages.sh")
    env.plain_module(env.module_file, None, f"-I{numpy}/numpy/core/include", text=f"""
#include <Python.h>
#include <numpy/arrayobject.h>
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{MODULE}", 0, -1, 0}};
PyMODINIT_FUNC PyInit_{MODULE}(void) {{
  import_array();
  return PyModule_Create(&definition);
}}
""")
    return Fault(root="numpy_abi_mismatch", error="compiled against ABI version|multiarray failed to import", only_observed=True)
