# SPDX-License-Identifier: Apache-2.0
"""Builds that the machine stops, and not the sources: a full disk, two disks, too little memory, pip's isolation."""
import os
import signal
import subprocess
import time
from pathlib import Path

from fault import fault
from faults_sources import FOR_SM_90, broken_build, scan_sources
from fixtures import SkipTest, need_nvcc, need_root, shared_python, shell


def small_disk(env, size):
    """The folder `tmp` with a file system of its own, until the environment is removed."""
    need_root("mount a file system")
    folder = env.work / "tmp"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], stderr=subprocess.DEVNULL).returncode:
        raise SkipTest("no file system can be mounted here")
    env.at_end.callback(subprocess.run, ["umount", folder])
    return folder


# nvcc writes what the preprocessor makes of a source to TMPDIR.
@fault()
def sources_small_tmp(env):
    need_nvcc()
    disk = small_disk(env, "256k")
    return broken_build(scan_sources(env, "CUDAExtension", FOR_SM_90), "disk_full", "No space left on device",
                        variables={"TMPDIR": str(disk)})


# A setup.py as that of mamba-ssm 1.x: it asks for a ready wheel, and renames what came.
@fault()
def sources_wheel_across_disks(env):
    disk = small_disk(env, "8m")
    folder = scan_sources(env, "CppExtension", "[]")
    wheel = next(Path(shell("fx_wheels")).glob("iniconfig-*.whl"))
    head, rest = (folder / "setup.py").read_text().split("import torch\n", 1)
    fetch = f"""\
import os, urllib.request
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

class FetchedWheel(bdist_wheel):
    def run(self):
        os.makedirs(self.dist_dir, exist_ok=True)
        urllib.request.urlretrieve("file://{wheel}", "scan.whl")
        os.rename("scan.whl", os.path.join(self.dist_dir, "scan.whl"))
"""
    (folder / "setup.py").write_text(head + fetch + "import torch\n" + rest.replace(
        '"build_ext": BuildExtension', '"build_ext": BuildExtension, "bdist_wheel": FetchedWheel'))
    # Only where a ready wheel exists does it come to that: a warning.
    return broken_build(
        folder, "", r"Errno 18\] Invalid cross-device link", found=("cross_device_link",), log="cross_device_link", verdict="healthy",
        status=0, variables={"TMPDIR": str(disk)},
        statement="import runpy, sys, tempfile; sys.argv = ['setup.py', 'bdist_wheel', '--dist-dir', tempfile.gettempdir() + '/wheels']; "
        "runpy.run_path('setup.py', run_name='__main__')")


# The real pip, with the isolation that it uses unless it is told not to.
@fault(matrix=True)
def sources_isolated_pip(env):
    folder = scan_sources(env, "CppExtension", "[]")
    with open(folder / "csrc/scan.cpp", "a") as source:
        source.write('static PyModuleDef scan_module = {PyModuleDef_HEAD_INIT, "scan_cuda", nullptr, -1, nullptr};\n'
                     "PyMODINIT_FUNC PyInit_scan_cuda() { return PyModule_Create(&scan_module); }\n")
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n')
    # A warning: pip can be told to build where torch is.
    return broken_build(
        folder, "", "No module named 'torch'", found=("torch_missing_at_build",), log="torch_missing_at_build", verdict="healthy", status=0,
        statement=f"import subprocess, sys; sys.exit(subprocess.call(['{shared_python()}', '-m', 'pip', '--disable-pip-version-check', "
        f"'--python', sys.executable, 'install', '--no-index', '--find-links', '{shell('fx_wheels')}', '.']))")


def leave_group(group):
    """The compilers that the killed build left behind are in it."""
    (group.parent / "cgroup.procs").write_text(str(os.getpid()))
    for process in (group / "cgroup.procs").read_text().split():
        os.kill(int(process), signal.SIGKILL)
    for _ in range(5):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(1)


# A group of processes with memory for one compiler and not for three, as a batch system or a container sets it.
@fault(matrix=True)
def sources_memory_of_a_group(env):
    need_nvcc()
    need_root("make a control group")
    first = Path("/sys/fs/cgroup/memory")  # version 1; else the one hierarchy of version 2
    group = (first if first.is_dir() else first.parent) / f"scankit-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first.is_dir() else "memory.max")).write_text("1400000000")
    except OSError as problem:
        if group.is_dir():
            group.rmdir()
        raise SkipTest(f"no control group can be made here: {problem}") from None
    env.at_end.callback(leave_group, group)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    folder = scan_sources(env, "CUDAExtension", FOR_SM_90)
    names = ("fwd", "bwd", "step", "update")
    for name in names:
        (folder / f"csrc/scan_{name}.cu").write_text(f"#include <ATen/core/Tensor.h>\n__global__ void scan_{name}() {{}}\n")
    setup = (folder / "setup.py").read_text()
    (folder / "setup.py").write_text(setup.replace('"csrc/scan_fwd.cu"', ", ".join(f'"csrc/scan_{name}.cu"' for name in names)))
    # The kernel kills the biggest of the group, compiler or setup.py; a shell says of the latter what this line does.
    return broken_build(
        folder, "build_oom", "Killed|died due to signal 9|signal 9", log=None, variables={"MAX_JOBS": "4"},
        statement='import subprocess, sys; code = subprocess.call([sys.executable, "setup.py", "build_ext", "--inplace"]); '
        'print("Killed" if code == -9 else ""); sys.exit(code != 0)')
