# SPDX-License-Identifier: Apache-2.0
"""How `scankit build` chooses a compiler. Nothing is downloaded: the wheels here are made on the spot;
test_toolchain_wheels.py takes the real ones."""
import os
import re
import shutil
import zipfile

import pytest

from program import run_program

pytestmark = pytest.mark.ctest(group="builder.toolchains", timeout=300)


@pytest.fixture
def nothing_fetched(convolution):
    """Asserts that no compiler is in the cache."""
    def nothing_fetched():
        folder = convolution.cache / "toolchains"
        assert not folder.exists() or not os.listdir(folder), os.listdir(folder)
    return nothing_fetched


def test_no_such_kind(convolution, work):
    convolution("--toolchain", "gcc").ends(2, "nvrtc-wheel")
    convolution("--toolchain", work).ends(2, "libnvrtc.so.N")


def test_consent(convolution, nothing_fetched):
    # sm_52 is beyond CUDA 13, so that only NVRTC 12.9 makes both.
    if re.search(r"(?m)^    selected", convolution("--list-toolchains", "--arch", "sm_52,sm_121").out):
        print("note: a CUDA 12.9 NVRTC is here: consent is not looked at")
    else:
        result = convolution("--arch", "sm_52,sm_121").ends(5, "nvidia-cuda-nvrtc-cu12==12.9.86")
        result.ends(5, "--allow-download")
        nothing_fetched()
    convolution("--release").ends(5)
    convolution("--arch", "sm_20", "--allow-download").ends(5)
    nothing_fetched()


def test_wheel_with_another_hash(convolution, nothing_fetched, work, monkeypatch):
    """Of the right name and version, but not the pinned one: a mirror that was tampered with, or a wrong file."""
    python = shutil.which("python3")
    if run_program(python, "-m", "pip", "--version").status:
        pytest.skip(f"{python} has no pip")
    name = "nvidia_cuda_nvrtc_cu12-12.9.86"
    (work / "index").mkdir()
    with zipfile.ZipFile(work / f"index/{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", b"not a library")
        wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: nvidia-cuda-nvrtc-cu12\nVersion: 12.9.86\n")
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(work / "index"))
    words = ["--python", python, "--toolchain", "nvrtc-wheel", "--arch", "sm_60"]
    convolution(*words).ends(5, "HASHES").ends(5, "--require-hashes")
    nothing_fetched()
    monkeypatch.setenv("PIP_FIND_LINKS", str(work / "none"))
    convolution(*words).ends(5, "nvidia-cuda-nvrtc-cu12==12.9.86 could not be downloaded")
    nothing_fetched()


@pytest.fixture
def nvcc(convolution):
    """An nvcc that makes sm_90; else a skip."""
    listed = convolution("--list-toolchains", "--toolchain", "nvcc", "--arch", "sm_90")
    if listed.status:
        pytest.skip("no nvcc that can be used here")
    listed.ends(0, "host compiler: gcc up to").ends(0, "selected: builds sm_90")
    return re.search(r"(?m)^nvcc [0-9.]*: (.*)", listed.out)[1]


def test_host_compiler_of_nvcc(convolution, nvcc, work):
    compiler = work / "path/g++"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho 99.1.0\n")
    compiler.chmod(0o755)
    words = {"variables": {"PATH": compiler.parent}}
    convolution("--toolchain", nvcc, "--arch", "sm_90", **words).ends(5, "but found gcc 99.1.0").ends(5, "NVRTC needs no compiler")
    compiler.unlink()
    convolution("--toolchain", nvcc, "--arch", "sm_90", **words).ends(5, "NVRTC needs no compiler")


def test_nvcc_without_its_parts(convolution, nvcc, work):
    copy = work / "toolkit/bin/nvcc"
    copy.parent.mkdir(parents=True)
    shutil.copy(nvcc, copy)
    convolution("--toolchain", work / "toolkit", "--arch", "sm_90").ends(5, "cudafe++ is missing")
