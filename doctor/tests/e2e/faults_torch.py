# SPDX-License-Identifier: Apache-2.0
"""Faults between a module and the torch below it, and torch installations that do not start by themselves."""
import os
import shutil
import time

from environment import MODULE, shared_library
from fault import Fault, fault
from fixtures import CACHE, MODULE_SOURCES, OTHER_TORCH, TORCH, run, shared_torch, shell


def release(version):
    """2.11 of 2.11.0"""
    return version.rpartition(".")[0]


@fault(files="plain")
def torch_version_mismatch(env):
    env.link_stale()
    return Fault(root="torch_version_mismatch", error="undefined symbol: _ZN.*", log="torch_version_mismatch|abi_cxx11_mismatch",
                 built_for=(env.module_file.name, release(OTHER_TORCH)), says=r"^ +built for torch 2\.[0-9]+.*; 2\.11 is installed$")


@fault()
def abi_cxx11_mismatch(env):
    env.link_module(env.module_file, *env.objects("binding-oldabi", "scan"))
    # Built by the headers of the installed torch, whose own wheels have the new strings.
    return Fault(root="abi_cxx11_mismatch", error="undefined symbol: _ZN3c10.*Ss", built_for=(env.module_file.name, release(TORCH)),
                 says=r"pre-CXX11 ABI; 2\.11 is installed$|it was built with -D_GLIBCXX_USE_CXX11_ABI=0")


@fault()
def own_symbol_undefined(env):
    env.link_module(env.module_file, *env.objects("binding"))
    return Fault(root="own_symbol_undefined", error="undefined symbol: _Z24selective_scan_reference")


# The module cannot come before torch, and the user's own program has it so.
@fault(files_printed="plain")
def torch_not_imported_first(env):
    env.link_good()
    project = env.folder_beside("project")
    (project / "train.py").write_text(f"import os\nimport numpy as np\nimport {MODULE}\nimport torch\n")
    return Fault(root="torch_not_imported_first", error=r"lib(c10|torch.*)\.so: cannot open shared object file", starts_in=project,
                 statement="import train")


# A build of torch 1.10 to 1.12 was linked with the two halves of a CUDA library that is one again since.
@fault(matrix=True, files_printed="plain")
def torch_library_of_old_releases(env):
    env.needs_library("libtorch_cuda_cu.so", "_ZN2at4cuda9warp_sizeEv")
    return Fault(root="torch_version_mismatch", error="libtorch_cuda_cu.so: cannot open shared object file")


@fault()
def built_for_rocm(env):
    env.needs_library("libc10_hip.so", "_ZN3c103hip12device_countEv")
    return Fault(root="torch_version_mismatch", error="libc10_hip.so: cannot open shared object file")


# torchvision's way: a package of Python files loads a library of operators by its path, and that one is for another torch.
# The user names the package, of which nothing but its folder can be found.
@fault(matrix=True)
def package_of_operators(env):
    package = env.site / "seeing"
    shared_library(package / "lib/libseeing.so",
                   'void gone(void) __asm__("_ZN5torch7Library13gone_for_goodEv");\nvoid run(void) { gone(); }\n',
                   None, "-Wl,-z,now")
    (package / "__init__.py").write_text(
        'import os, torch; torch.ops.load_library(os.path.join(os.path.dirname(__file__), "lib", "libseeing.so"))\n')
    return Fault(root="torch_version_mismatch", error="undefined symbol: _ZN5torch7Library13gone_for_goodEv", statement="import seeing",
                 options=["--module", "seeing"], says="1 compiled extension of seeing")


# torch was installed without what it depends on, or was cleaned of what looked useless.
@fault(matrix=True, files_printed="plain")
def torch_incomplete_own_library(env):
    env.make_again("plain")
    env.link_good()
    (env.site / "torch/lib/libshm.so").unlink()
    return Fault(root="torch_incomplete", error="libshm.so: cannot open shared object file", statement="import torch")


@fault(files_printed="plain")
def torch_incomplete_no_deps(env):
    env.make_again("plain")
    shutil.rmtree(env.site / "nvidia/cusparselt")
    return Fault(root="torch_incomplete", error="libcusparseLt.so.0: cannot open shared object file", statement="import torch")


# A folder of the current directory has torch's name: an unpacked source archive, or the user's own file.
@fault(files_printed="plain", printed="matrix")
def torch_sources_in_the_current_folder(env):
    env.link_good()
    sources = env.beside("checkout") / "torch"
    (sources / "_C").mkdir(parents=True)
    (sources / "__init__.py").write_text('from torch._C import *\nraise ImportError("Failed to load PyTorch C extensions")\n')
    (sources / "_C/__init__.pyi").touch()
    return Fault(root="torch_incomplete", starts_in=env.beside("checkout"),
                 error="Failed to load PyTorch C extensions|No module named .torch._C|partially initialized")


# pip compiled the module in a folder of its own, with the torch that it had put there: its headers' paths stay in the
# file, since torch's checks print where they stand.
@fault(timeout=900)
def build_isolation_wrong_torch(env):
    overlay = env.beside("tmp") / "pip-build-env-2wm1dwk5/overlay/lib/python3.11/site-packages"
    overlay.mkdir(parents=True)
    (overlay / "torch").symlink_to(shell("fx_other_torch") + "/torch")
    isolated = env.beside("isolated.o")
    # gcc would write the headers' real paths, behind the link.
    run("g++", "-std=c++20", "-O1", "-fPIC", "-w", "-fno-canonical-system-headers", f"-I{env.include}", "-isystem",
        overlay / "torch/include", "-isystem", overlay / "torch/include/torch/csrc/api/include", "-c", MODULE_SOURCES / "binding.cc",
        "-o", isolated)
    env.link_module(env.module_file, isolated, *env.objects("scan-other"))
    shutil.rmtree(env.beside("tmp"))
    isolated.unlink()
    return Fault(root="build_isolation_wrong_torch", error="undefined symbol: _ZN.*", log="torch_version_mismatch",
                 found=("build_isolation_wrong_torch", "torch_version_mismatch"))



# A package wanted another torch, and pip brought it: torch is there as a requirement (no REQUESTED), newer than the
# module. The files of the shared environment are links, so the metadata is copied before it is marked as pip does.
@fault(matrix=True, timeout=900)
def pip_replaced_torch(env):
    env.link_stale()
    now = time.time()
    aged(env.module_file, now - 2 * 86400)
    (env.site / "shared-torch.pth").unlink()
    # Links, or copies where the cache is on another file system.
    run("sh", "-c", 'cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"', f"{shared_torch().parent}/.", f"{env.site}/")
    for info in env.site.glob("torch-*.dist-info"):
        copy = info.with_name(info.name + ".copy")
        run("cp", "-a", "--no-preserve=links", info, copy)
        shutil.rmtree(info)
        copy.rename(info)
        (info / "REQUESTED").unlink(missing_ok=True)
        aged(info / "RECORD", now - 3600)
    env.install_release("causal-conv1d", "1.4.0")
    for info in env.site.glob("causal_conv1d-*.dist-info"):
        aged(info / "RECORD", now - 59 * 60)
    return Fault(root="pip_replaced_torch", error="undefined symbol: _ZN.*", log="torch_version_mismatch",
                 found=("pip_replaced_torch", "torch_version_mismatch"))


def aged(path, seconds):
    os.utime(path, (seconds, seconds))


def pybind_module(env, version, name):
    """A module of module/NAME.cc, compiled with the headers of that pybind11."""
    headers = CACHE / f"headers/pybind11-{version}"
    if not (headers / "pybind11").is_dir():
        shell("fx_download", f"{headers}.wheel", f"pybind11=={version}")
        headers.mkdir(parents=True, exist_ok=True)
        for wheel in headers.parent.glob(f"{headers.name}.wheel/*.whl"):
            run("unzip", "-q", wheel, "-d", headers)
    run("g++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{headers}/pybind11/include",
        f"-I{env.include}", MODULE_SOURCES / f"{name}.cc", "-o", env.site / f"{name}{env.suffix}")


@fault(matrix=True)
def pybind_internals(env):
    pybind_module(env, "2.13.6", "base_ops")
    pybind_module(env, "3.0.1", "derived_ops")
    return Fault(root="pybind_internals_mismatch", error="referenced unknown base type", log=None, only_observed=True,
                 statement="import torch, derived_ops", options=["--module", "base_ops", "--module", "derived_ops"])
