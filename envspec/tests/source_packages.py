# SPDX-License-Identifier: Apache-2.0
"""Source archives with a compiled module, for the tests of locks whose packages no index has as a wheel."""
import shutil
from pathlib import Path

from fixtures import shell_or_skip
from sdists import source_archive

NATIVE = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *nothing) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_c", "", -1, methods};
PyMODINIT_FUNC PyInit__c(void) { return PyModule_Create(&module); }
"""

# Every build leaves a line, so that a test sees what was built and when.
NATIVE_SETUP = """
from setuptools import Extension, setup
open({mark!r}, "a").write("built\\n")
setup(name="native", version="1.0", packages=["native"], ext_modules=[Extension("native._c", ["native/_c.c"])])
"""

# As mamba-ssm's: setup.py imports torch, and nothing says so before it runs.
TORCH_SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(name="twice", version="1.0", packages=["twice"], cmdclass={"build_ext": BuildExtension}, install_requires=RequiresList,
      ext_modules=[CppExtension("twice._c", ["twice/_c.cpp"])])
"""

# TORCH_CHECK puts the paths of the source and of torch's headers into the file.
TWICE = """
#include <torch/library.h>
#include <ATen/ATen.h>
#include <Python.h>
static at::Tensor twice(const at::Tensor &x) { TORCH_CHECK(x.dim() > 0, "no dimension"); return x * 2; }
TORCH_LIBRARY(twice, m) { m.def("twice(Tensor x) -> Tensor", twice); }
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_c", "", -1, nullptr};
PyMODINIT_FUNC PyInit__c(void) { return PyModule_Create(&module); }
"""


def native(folder, mark):
    return source_archive(folder, "native", "1.0", files={
        "native/__init__.py": "from native._c import answer\n", "native/_c.c": NATIVE, "setup.py": NATIVE_SETUP.format(mark=str(mark)),
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'})


def inside(folder):
    """Its build imports alpha, which is in the environment alone, and declares that it is built there."""
    return source_archive(folder, "inside", "1.0", files={
        "inside/__init__.py": "from inside._c import answer\n", "inside/_c.c": NATIVE,
        "setup.py": "import alpha\nfrom setuptools import Extension, setup\n"
                    'setup(name="inside", version="1.0", packages=["inside"], ext_modules=[Extension("inside._c", ["inside/_c.c"])])\n',
        "scankit.module.yaml": "schema: 1\ndistribution: inside\nmodules:\n  - name: inside._c\nbuild:\n  isolation: false\n"})


def twice(folder, requires=()):
    return source_archive(folder, "twice", "1.0", files={
        "twice/__init__.py": "import torch\nfrom twice import _c\n", "twice/_c.cpp": TWICE, "setup.py": TORCH_SETUP.replace("RequiresList", repr(list(requires)))})


def build_tools():
    """Wheels that builds need. Before `project`: the download needs the caller's index."""
    return Path(shell_or_skip("fx_packages", "setuptools==75.8.0"))


def serve(index, *wheels):
    """Serves these files, too."""
    for file in wheels:
        if not (index.served / file.name).exists():
            shutil.copy(file, index.served) if file.stat().st_size < 50 << 20 else (index.served / file.name).symlink_to(file)
    index.stop()
    index.serve()
