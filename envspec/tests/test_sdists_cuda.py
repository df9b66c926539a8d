# SPDX-License-Identifier: Apache-2.0
"""Packages with device code that nvcc built: the lock names it, `env create` and `env sync` build with the one that is here, and say
which was another; without one nothing is made."""
import os
import shutil
import subprocess

import pytest

from creating import Create, left_behind, record_of
from fixtures import need_nvcc, need_root, run, site_of
from program import run_program
from source_packages import build_tools, device, serve

pytestmark = pytest.mark.ctest(group="envspec.sdists", labels="matrix;e2e", timeout=600)

# A mount namespace of its own, in which the toolkit's directory is empty. Nothing stays mounted.
WITHOUT_TOOLKIT = ["unshare", "-m", "bash", "-euc", 'for d in /usr/local/cuda*; do mount -t tmpfs none "$(realpath "$d")"; done; exec "$@"', "-"]


@pytest.fixture
def tools():
    """Before `project`, whose PATH is short."""
    need_nvcc()
    return build_tools()


@pytest.fixture
def project(tools, bare_project, work, monkeypatch):
    """With `device`, which somebody's pip has built for sm_90 from the archive of the index; locked."""
    for name in ("CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.delenv(name, raising=False)
    device(bare_project.index.served, work / "built")
    serve(bare_project.index, *tools.glob("setuptools-75.8.0-*.whl"))
    bare_project.make_environment("env")
    run("env", "TORCH_CUDA_ARCH_LIST=9.0", bare_project.installers / "python", "-m", "pip", "--python", bare_project.python, "install", "-q",
        "device==1.0")
    bare_project.lock().ends(0)
    (work / "built").unlink()
    return bare_project


def nvcc_version():
    """"13.0.88", of its own answer."""
    answer = subprocess.run(["/usr/local/cuda/bin/nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    return answer.split(", V")[1].split()[0]


def test_nvcc(project, work):
    """Its version is in the lock, and the same one builds the same code again."""
    by = project.distribution("device")["build"]["toolchain"]
    assert by["nvcc"] == [nvcc_version()] and by["cuda"] == [".".join(nvcc_version().split(".")[:2])] and by["code"] == ["sm_90"], by
    create = Create(project)
    result = create("new", "--json")
    assert result.status in (0, 4), result
    [step] = [one for one in result.json["proof"] if one["what"] == "build device"]
    assert "another toolchain" not in step["detail"], step
    run(project.installers / "python", "-m", "venv", "--without-pip", "other")
    assert create.sync("other").status in (0, 4)
    for name in ("new", "other"):
        assert run(f"{name}/bin/python", "-c", "import device; print(device.answer())") == "42\n"
    assert record_of("other")["content"]["device"] == record_of("new")["content"]["device"]


def test_another_nvcc(project, work, monkeypatch):
    """What is named is what the files themselves tell, of the lock's and of this build."""
    toolkit = work / "toolkit"
    for folder in ("bin", "include"):
        os.makedirs(toolkit / folder)
    shutil.copy("/usr/local/cuda/include/cuda.h", toolkit / "include")
    # An nvcc that says in each image to be of another patch release.
    (toolkit / "bin/nvcc").write_text('#!/bin/bash\nset -eu\n/usr/local/cuda/bin/nvcc -no-compress "$@"\n'
                                      f'for last; do :; done\n[ ! -f "$last" ] || sed -i "s/V{nvcc_version()}/V{other_patch()}/g" "$last"\n')
    (toolkit / "bin/nvcc").chmod(0o755)
    (toolkit / "lib64").symlink_to("/usr/local/cuda/lib64")
    create = Create(project)
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    result = create("new", "--json")
    assert result.status == 4, result
    [step] = [one for one in result.json["proof"] if one["what"] == "build device"]
    assert f"built with: nvcc {nvcc_version()} -> {other_patch()}" in step["detail"], step


def other_patch():
    """As many digits, since it is written into a file in the place of the other."""
    version = nvcc_version()
    return version[:-1] + ("1" if version[-1] != "1" else "2")


def test_no_nvcc(project, work):
    """Refused with the package's name, before an environment is made or changed."""
    need_root("mount")
    if run_program("unshare", "-m", "true").status:
        pytest.skip("no mount namespace can be made here")
    create = Create(project)
    refused = create("new", before=WITHOUT_TOOLKIT).ends(2, "1 package with CUDA code must be built again, and nvcc was not found: ")
    refused.ends(2, f"device==1.0 (nvcc {nvcc_version()}, sm_90)").ends(2, "set CUDA_HOME to its directory")
    assert not left_behind(), left_behind()
    run(project.installers / "python", "-m", "venv", "--without-pip", "other")
    scankit = project.scankit.with_(before=WITHOUT_TOOLKIT)
    for words in ((), ("--dry-run",)):
        scankit("env", "sync", "other", *words, variables=create.variables()).ends(2, "nvcc was not found: device==1.0")
    assert not (work / "built").exists() and not any(site_of(os.path.abspath("other/bin/python")).iterdir())
    # With its wheel nothing needs to be built.
    project.export("requirements", "requirements.txt").ends(0)
    create("new", before=WITHOUT_TOOLKIT).ends(0)
