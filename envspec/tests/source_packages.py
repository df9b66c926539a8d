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
TWICE_HEAD = """
#include <torch/library.h>
#include <ATen/ATen.h>
#include <Python.h>
"""
TWICE_TAIL = """
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_c", "", -1, nullptr};
PyMODINIT_FUNC PyInit__c(void) { return PyModule_Create(&module); }
"""
TWICE = TWICE_HEAD + """
static at::Tensor twice(const at::Tensor &x) { TORCH_CHECK(x.dim() > 0, "no dimension"); return x * 2; }
TORCH_LIBRARY(twice, m) { m.def("twice(Tensor x) -> Tensor", twice); }
""" + TWICE_TAIL


# Device code without torch: a build of seconds, for the GPU that TORCH_CUDA_ARCH_LIST names.
DEVICE_SETUP = """
import os, subprocess
from setuptools import Extension, setup
open({mark!r}, "a").write("built\\n")
home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
gpu = os.environ["TORCH_CUDA_ARCH_LIST"].replace(".", "")
subprocess.check_call([os.path.join(home, "bin/nvcc"), "-c", f"-gencode=arch=compute_{{gpu}},code=sm_{{gpu}}", "-Xcompiler=-fPIC", "device/kernel.cu", "-o", "kernel.o"])
setup(name="device", version="1.0", packages=["device"], ext_modules=[Extension("device._c", ["device/_c.c"], extra_objects=["kernel.o"],
      library_dirs=[os.path.join(home, "lib64")], libraries=["cudart_static", "rt", "dl", "pthread", "stdc++"])])
"""

# As causal-conv1d's: a CUDAExtension, whose build imports torch. With -lineinfo the places of torch's headers and of the source
# would be in the device code.
TORCH_DEVICE_SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="devicetorch", version="1.0", packages=["device_torch"], cmdclass={"build_ext": BuildExtension},
      ext_modules=[CUDAExtension("device_torch._c", ["device_torch/_c.cpp", "device_torch/kernel.cu"],
                                 extra_compile_args={"cxx": [], "nvcc": ["-lineinfo"]})])
"""

KERNEL = """
__global__ void twice_kernel(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" void launch_twice(const float *x, float *y, int n) { twice_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }
"""

# Device code of functions in torch's headers.
TORCH_KERNEL = """
#include <c10/util/BFloat16.h>
__global__ void round_kernel(const c10::BFloat16 *x, c10::BFloat16 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i];
}
""" + KERNEL

TORCH_DEVICE = TWICE_HEAD + """
extern "C" void launch_twice(const float *x, float *y, int n);
static at::Tensor twice(const at::Tensor &x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat && x.is_contiguous(), "contiguous floats are needed");
  if (!x.is_cuda()) return x * 2;
  at::Tensor y = at::empty_like(x);
  launch_twice(x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.numel()));
  return y;
}
TORCH_LIBRARY(device_torch, m) { m.def("twice(Tensor x) -> Tensor", twice); }
""" + TWICE_TAIL


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


def device(folder, mark):
    return source_archive(folder, "device", "1.0", files={
        "device/__init__.py": "from device._c import answer\n", "device/_c.c": NATIVE, "device/kernel.cu": KERNEL,
        "setup.py": DEVICE_SETUP.format(mark=str(mark)),
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'})


def device_torch(folder):
    return source_archive(folder, "devicetorch", "1.0", files={
        "device_torch/__init__.py": "import torch\nfrom device_torch import _c\n", "device_torch/_c.cpp": TORCH_DEVICE,
        "device_torch/kernel.cu": TORCH_KERNEL, "setup.py": TORCH_DEVICE_SETUP})


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
