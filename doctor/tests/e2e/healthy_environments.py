# SPDX-License-Identifier: Apache-2.0
"""Environments and modules in which nothing is wrong although something looks so."""
import json
import os
import shutil

from environment import MODULE, shared_library
from fixtures import MODULE_SOURCES, TRITON, SkipTest, host_python, minor_of, run, shared_python, shell_or_skip, site_of
from healthy import Healthy, healthy


@healthy(files="plain")
def torch_only(env):
    return Healthy("import torch")


# Nothing is wrong, and nothing was there to be looked at.
@healthy(files="bare")
def no_torch(env):
    return Healthy("import json", verdict="empty")


@healthy()
def good_module(env):
    env.link_good()
    return Healthy()


@healthy(files="plain", labels="matrix;e2e")
def good_module_no_torch_path(env):
    return good_module(env)


# A venv whose Python was upgraded keeps the old one's folder; no interpreter looks there.
@healthy()
def leftovers_of_another_python(env):
    env.link_good()
    old = env.folder / "lib/python3.6/site-packages"
    old.mkdir(parents=True)
    (old / f"{MODULE}.cpython-36m-x86_64-linux-gnu.so").write_bytes(env.module_file.read_bytes()[:5000])
    return Healthy()


@healthy()
def harmless_ld_library_path(env):
    env.link_good()
    return Healthy(variables={"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu:{env.work}/nothing-here:"})


# The package needs transformers; triton and causal-conv1d are optional for it, and not installed.
@healthy(labels="matrix;e2e", timeout=900)
def mamba_1_2(env):
    env.link_good()
    env.install_release("mamba-ssm", "1.2.0.post1")
    env.install_transformers_4()
    return Healthy("import mamba_ssm")


@healthy(labels="matrix;e2e", timeout=900)
def mamba_1_2_with_conv(env):
    mamba_1_2(env)
    env.install_release("causal-conv1d", "1.4.0")
    env.link_conv(7)
    return Healthy("import mamba_ssm, causal_conv1d")


@healthy(labels="matrix;e2e", timeout=900)
def mamba_2_without_conv(env):
    env.link_good()
    env.install_mamba()
    env.install_transformers_4()
    env.install_with(TRITON)
    return Healthy("import mamba_ssm; mamba_ssm.Mamba2")


@healthy(labels="matrix;e2e", timeout=900)
def conv_alone(env):
    env.link_good()
    env.install_release("causal-conv1d", "1.6.0")
    env.link_conv(8)
    return Healthy("import causal_conv1d")


# A project in the current directory that can do without its own variant of the module, and tests of it that nobody starts.
@healthy()
def project_with_another_way(env):
    env.link_good()
    (env.work / "train.py").write_text(f"""\
import torch
HAS_OFLEX = True
try:
    import {MODULE}_oflex
except ImportError:
    HAS_OFLEX = False
import {MODULE}


def scan(u):
    if HAS_OFLEX:
        return {MODULE}_oflex.fwd(u)
    return {MODULE}.fwd
""")
    (env.work / "kernels").mkdir()
    (env.work / "kernels/test_scan.py").write_text(f"import {MODULE}_core\n{MODULE}_core.fwd(1)\n")
    return Healthy("import train; train.scan(1)")


@healthy()
def startup_noise(env):
    env.link_good()
    env.at_start('import sys\nfor i in range(20000): print("noise", i, "{\\"verdict\\": 1}")\nsys.stderr.write("\\x1b[31mred")\n')
    return Healthy()


# The same file under the stable ABI's suffix, written against Python 3.8's interface.
@healthy(files="bare")
def abi3_module(env):
    env.plain_module(env.site / f"{MODULE}.abi3.so", "plain.c")
    return Healthy(f"import {MODULE}")


# conda's layout: the interpreter beside its libraries, its records in conda-meta, no venv.
@healthy(files="bare")
def conda_like_layout(env):
    python = os.path.realpath(host_python())
    real = os.path.dirname(os.path.dirname(python))
    # Debian's Python looks for its packages in folders of its own, wherever it lies; conda's never does.
    if real == "/usr":
        raise SkipTest("the only Python here is the system's")
    version = run(python, "-c", "import platform; print(platform.python_version())").strip()
    shutil.rmtree(env.folder)
    (env.folder / "bin").mkdir(parents=True)
    (env.folder / "conda-meta").mkdir()
    run("sh", "-c", 'cp -al "$1/lib" "$2/lib" 2>/dev/null || cp -a "$1/lib" "$2/lib"', "-", real, env.folder)
    name = f"python{version.rpartition('.')[0]}"
    shutil.copy2(python, env.folder / "bin" / name)
    env.python.symlink_to(name)
    if os.path.isdir(f"{real}/include"):
        (env.folder / "include").symlink_to(f"{real}/include")
    (env.folder / f"conda-meta/python-{version}-0.json").write_text(
        json.dumps({"name": "python", "version": version, "channel": "conda-forge"}) + "\n")
    (env.folder / "conda-meta/history").touch()
    if run(env.python, "-c", "import sys; print(sys.prefix)", status=None).strip() != str(env.folder):
        raise SkipTest("this Python does not find itself in another folder")
    (env.site / "shared-torch.pth").write_text(f"{site_of(shared_python())}\n")
    env.link_good()
    return Healthy(variables={"CONDA_PREFIX": str(env.folder)})


# Its records speak of another torch and another CUDA; every name that it asks for is there.
@healthy()
def older_build_that_still_loads(env):
    env.link_good()
    info = env.site / f"{MODULE}-1.0+cu118torch2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: selective-scan-cuda\nVersion: 1.0+cu118torch2.1\n")
    return Healthy()


# A package that can do without: the import is guarded, and nothing else asks for the module.
@healthy()
def masked_optional_import(env):
    (env.site / "zeta").mkdir()
    (env.site / "zeta/__init__.py").write_text(f"try:\n    import {MODULE}\nexcept ImportError:\n    {MODULE} = None\n")
    return Healthy("import torch, zeta")


@healthy()
def user_site(env):
    env.use_system_packages()
    env.link_good(env.work / f"user/lib/python{minor_of(env.python)}/site-packages" / env.module_file.name)
    return Healthy(variables={"PYTHONUSERBASE": str(env.work / "user")})


# The path holds other people's Pythons and folders that are not there; nothing in them is taken.
@healthy()
def harmless_pythonpath(env):
    env.link_good()
    other = env.work / "other"
    (other / "lib").mkdir(parents=True)
    (other / MODULE).mkdir()
    (other / "helper.py").write_text("x = 1\n")
    (other / f"{MODULE}.cpython-36m-x86_64-linux-gnu.so").write_bytes(env.module_file.read_bytes()[:3000])
    return Healthy(variables={"PYTHONPATH": f"{other}:{env.work}/none"})


@healthy()
def editable_install(env):
    project = env.work / "project"
    build = project / "build/lib.linux-x86_64-cpython-310"
    info = env.site / "mamba_ssm_like-1.0.dist-info"
    for folder in (project / "mamba_ssm_like", build, info):
        folder.mkdir(parents=True)
    (project / "mamba_ssm_like/__init__.py").write_text(f"{Healthy().statement}\n")
    env.link_good(project / env.module_file.name)
    (build / f"{MODULE}.cpython-310-x86_64-linux-gnu.so").write_bytes((project / env.module_file.name).read_bytes()[:3000])
    (env.site / "__editable__.mamba_ssm_like-1.0.pth").write_text(f"{project}\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mamba-ssm-like\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{project}", "dir_info": {"editable": True}}) + "\n")
    return Healthy(f"import torch, {MODULE}, mamba_ssm_like")


# pip renames what it is about to remove; a run that was killed leaves the renamed folders behind.
@healthy()
def leftovers_of_pip(env):
    env.link_good()
    for name in ("~orch-2.4.0.dist-info", "~elective_scan_cuda", "__pycache__"):
        (env.site / name).mkdir(exist_ok=True)
    (env.site / "~orch-2.4.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n")
    return Healthy()


# A CUDA toolkit of another major before everything: torch's DT_RPATH does not care.
@healthy()
def toolkit_on_ld_library_path(env):
    env.link_good()
    library = env.work / "cuda-11.8/lib64/libcudart.so.11.0"
    shared_library(library, "int cudaGetLastError(void) { return 0; }\n", "libcudart.so.11.0")
    return Healthy(variables={"LD_LIBRARY_PATH": str(library.parent)})


# Two names of one file are one copy.
@healthy()
def two_names_of_one_file(env):
    env.link_good()
    (env.site / f"{MODULE}.abi3.so").symlink_to(env.module_file.name)
    return Healthy()


@healthy()
def stripped_module(env):
    env.link_good()
    run("strip", env.module_file)
    return Healthy()


# The interpreter of the distribution: no venv, dist-packages, no torch.
@healthy(files="bare")
def system_python(env):
    if not os.access("/usr/bin/python3", os.X_OK):
        raise SkipTest("no /usr/bin/python3 here")
    shutil.rmtree(env.folder)
    (env.folder / "bin").mkdir(parents=True)
    env.python.symlink_to("/usr/bin/python3")
    return Healthy("import json", verdict="empty")


def far_torch(env, release, standard):
    """The good module built against that release, in an environment that holds it. Downloads and unpacks gigabytes."""
    wheels = shell_or_skip("fx_far_torch", release)
    run(host_python(), "-m", "pip", "--disable-pip-version-check", "-q", "--python", env.python, "install", "--no-index",
        "--no-compile", "--find-links", wheels, f"torch=={release}", "numpy<2")
    abi = run(env.python, "-c", "import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))").strip()
    objects = [env.work / f"{source}.o" for source in ("binding", "scan")]
    for target in objects:
        run("g++", f"-std={standard}", "-O1", "-fPIC", "-w", f"-I{env.include}", "-isystem", env.site / "torch/include", "-isystem",
            env.site / "torch/include/torch/csrc/api/include", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-c",
            MODULE_SOURCES / f"{target.stem}.cc", "-o", target)
    env.link_module(env.module_file, *objects)
    return Healthy()


@healthy(files="bare", labels="matrix;large", timeout=1500)
def far_torch_1_13(env):
    return far_torch(env, "1.13.1", "c++17")


@healthy(files="bare", labels="matrix;large", timeout=1500)
def far_torch_2_4(env):
    return far_torch(env, "2.4.1", "c++17")


@healthy(files="bare", labels="matrix;large", timeout=1500)
def far_torch_2_15(env):
    return far_torch(env, "2.15.0", "c++20")
