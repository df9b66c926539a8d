# SPDX-License-Identifier: Apache-2.0
"""Compilers that come as wheels, the real ones: pip and uv fetch 12.9's NVRTC, the CUDA 13 compiler wheels make an nvcc, an old
NVRTC 11.7 is used as it comes, and the release of the convolution is made of four compilers. About 450 MB of downloads;
skipped where the index is out of reach."""
import os
import re
import shutil
import time

import pytest

from fixtures import host_python, run, shell_or_skip
from program import run_program

pytestmark = pytest.mark.ctest(group="builder.toolchain_wheels", labels="matrix;large;e2e", timeout=1800)

NVRTC_12 = ["--arch", "sm_60", "--toolchain", "nvrtc-wheel"]
NVCC = ["--arch", "sm_90,compute_75"]
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/none", "UV_OFFLINE": "1"}


@pytest.fixture
def python(work):
    """An environment with pip, which can reach an index; else a skip."""
    run(host_python(), "-m", "venv", work / "pip")
    python = work / "pip/bin/python"
    if run_program(python, "-m", "pip", "-q", "download", "--no-deps", "-d", work / "reached", "packaging").status:
        pytest.skip("the index is out of reach")
    yield python
    shutil.rmtree(work / "pip")


@pytest.fixture
def module(convolution):
    return convolution.out / convolution.file


def cubins(convolution, module):
    return convolution.manifest(module).ends(0).out.count('"kind": "cubin"')


def images(convolution, module):
    """The manifest without which compiler it was."""
    return re.sub(r'(?s)"toolchain".*?\}', "", convolution.manifest(module).ends(0).out)


def fetching(convolution, python):
    """A build in the background that has begun to fetch."""
    started = convolution.start(*NVRTC_12, "--python", python, "--out", f"{convolution.work / 'other'}/")
    until = time.monotonic() + 120
    while not any(os.listdir(folder) for folder in convolution.cache.glob("toolchains/.fetch-*/tmp")):
        assert started.poll() is None and time.monotonic() < until, "nothing is fetched"
        time.sleep(0.05)
    return started


def test_nvrtc_by_pip(convolution, python, module):
    convolution(*NVRTC_12, "--python", python).ends(0, "downloading nvrtc-12.9.86")
    assert cubins(convolution, module) == 4
    first = module.read_bytes()

    def without_objects(variables=None):
        shutil.rmtree(convolution.cache / "objects")
        return convolution(*NVRTC_12, "--python", python, variables=variables)

    without_objects(OFFLINE).ends(0)
    assert module.read_bytes() == first, "the compiler that was fetched makes other bytes the second time"
    library = convolution.cache / "toolchains/nvrtc-12.9.86/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    with open(library, "r+b") as file:
        file.seek(5000000)
        file.write(b"x")
    without_objects(OFFLINE).ends(5)
    convolution(*NVRTC_12, "--python", python).ends(0)
    assert module.read_bytes() == first, "a damaged compiler was used"


def test_two_that_fetch_at_once(convolution, python):
    other = fetching(convolution, python)
    # A clock that jumps: the folder of the running fetch is as old as what two killed ones left.
    folders = convolution.cache / "toolchains"
    for name in ("killed", "of-the-future"):
        (folders / f".fetch-{name}").mkdir()
    for folder in folders.glob(".fetch-*"):
        year = 2099 if folder.name.endswith("of-the-future") else 2001
        when = time.mktime((year, 1, 1, 0, 0, 0, 0, 0, 0))
        os.utime(folder, (when, when))
    convolution(*NVRTC_12, "--python", python).ends(0)
    assert other.wait(timeout=600) == 0, "the other build was disturbed"
    assert os.listdir(folders) == ["nvrtc-12.9.86"]


def test_fetch_that_is_killed(convolution, python):
    other = fetching(convolution, python)
    other.kill()
    other.wait()
    assert not (convolution.cache / "toolchains/nvrtc-12.9.86").exists(), "half a compiler could be used"


def test_nvrtc_by_uv(convolution, python, module, work):
    """An environment of uv's has no pip."""
    convolution(*NVRTC_12, "--python", python).ends(0)
    first = module.read_bytes()
    uv = shell_or_skip("fx_installers") + "/bin/uv"
    shutil.rmtree(convolution.cache)
    variables = {"UV_CACHE_DIR": work / "uv-cache", "PATH": f"{os.path.dirname(uv)}:{os.environ['PATH']}"}
    run(uv, "venv", "-q", "--python", python, work / "uv-env", variables=variables)
    convolution(*NVRTC_12, "--python", work / "uv-env/bin/python", variables=variables).ends(0, "uv pip install")
    assert module.read_bytes() == first, "the compiler that uv fetched makes other bytes"


@pytest.mark.ctest(fixtures="torch_env")
def test_fix_shows_what_it_would_fetch(repair, python, work):
    del python  # only that the index can be reached
    here = repair("tested")
    here.break_module("selective_scan_cuda")
    cache = work / "fix-cache"

    def fix(*words):
        return here.fix("--arch", "sm_60", "--cache-dir", cache, "--module", "selective_scan_cuda", *words, timeout=1700)

    plan = fix("--dry-run")
    if "nvrtc" not in plan.text:
        pytest.skip("a compiler for sm_60 is installed here")
    plan.ends(0, "89 MB: ")
    fix().ends(1)
    assert not (cache / "toolchains").exists(), "fetched without --yes"
    fix("--yes").ends(0)
    assert (cache / "toolchains/nvrtc-12.9.86").is_dir()


def test_nvcc_of_wheels(convolution, python, module):
    convolution(*NVCC, "--toolchain", "nvcc-wheel", "--python", python).ends(0)
    assert cubins(convolution, module) == 4
    fetched = convolution.cache / "toolchains/nvcc-13.0.88/nvidia/cu13"
    by_kind, manifest = module.read_bytes(), images(convolution, module)
    convolution(*NVCC, "--toolchain", fetched, "--python", python).ends(0)
    assert module.read_bytes() == by_kind, "the same compiler by its path makes other bytes"

    system = shutil.which("nvcc")
    if system and "V13.0.88" in run(system, "--version"):
        convolution(*NVCC, "--toolchain", system, "--python", python).ends(0)
        assert images(convolution, module) == manifest, "the system's nvcc of the same release makes other images"

    (fetched / "include/crt").rename(convolution.work / "crt")
    missing = convolution("--arch", "sm_90", "--toolchain", fetched, "--python", python)
    missing.ends(5, "crt/host_config.h is missing")  # before it compiles


def test_nvrtc_11(convolution, python, work):
    """As torch 1.13 and 2.0 bring it."""
    run(python, "-m", "pip", "-q", "install", "--target", work / "cu11", "--no-deps", "nvidia-cuda-nvrtc-cu11==11.7.99")
    convolution("--arch", "sm_60,sm_86", "--toolchain", work / "cu11/nvidia/cuda_nvrtc/lib", "--python", python).ends(0)
    shutil.rmtree(work / "cu11")


@pytest.mark.ctest(processors=2)
def test_release_of_four_compilers(convolution, python, module):
    begin = time.monotonic()
    convolution("--arch", "release", "--allow-download", "--python", python, timeout=1700).ends(0)
    print(f"{time.monotonic() - begin:.0f} s, {module.stat().st_size} bytes, {cubins(convolution, module)} cubins")
    manifest = convolution.manifest(module).ends(0)
    assert manifest.out.count('"kind": "nvrtc"') == 4, manifest
    for target in [f"sm_{sm}" for sm in (60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 107, 120, 121)] + ["compute_80"]:
        manifest.ends(0, f'"target": "{target}"')
    shutil.rmtree(convolution.cache / "objects")
    convolution("--arch", "release", "--python", python, variables=OFFLINE, timeout=1700).ends(0)
