# SPDX-License-Identifier: Apache-2.0
"""`scankit build --check-reproducible`: of a good compiler, of one that leaks the time, and of the whole scan by each kind of
compiler."""
import os
import re
from pathlib import Path

import pytest

from building import Builds, addresses_can_be_fixed
from fixtures import python_with_torch, shell_or_skip

pytestmark = pytest.mark.ctest(group="builder.reproducible", labels="matrix;large;e2e", timeout=1800, processors=2)


@pytest.fixture
def twice(convolution, work, monkeypatch):
    """Builds with --check-reproducible; what it leaves behind is in WORK/tmp."""
    (work / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    return lambda *words: convolution("--check-reproducible", *words)


def test_good_compiler(convolution, twice, need_nvrtc, odd_nvrtc, work):
    if not addresses_can_be_fixed():
        pytest.skip("addresses cannot be fixed here: two builds are not compared")
    result = twice("--toolchain", need_nvrtc, "--arch", "sm_90,compute_90").ends(0, "reproducible: two builds gave the same")
    result.ends(0, "the umask")
    module = convolution.out / convolution.file
    assert convolution.manifest(module).ends(0).out == Path(f"{module}.json").read_text()
    # With a library more in the process the helper still fixes its addresses.
    twice("--toolchain", odd_nvrtc("plain"), "--arch", "sm_90", "--out", f"{work / 'plain'}/").ends(0)


def test_compiler_that_leaks_the_time(convolution, twice, odd_nvrtc, work):
    result = twice("--toolchain", odd_nvrtc("time"), "--arch", "sm_90,compute_90").ends(1)
    assert re.search(r"image conv_f32 for sm_90: section \.nv\.global\.init differs .*, in symbol leaked_time", result.out), result
    assert re.search(r'image conv_f32 for compute_90: line [0-9]* is ".*leaked_time', result.out), result
    assert not convolution.out.exists(), "something was written"
    kept = Path(re.search(r"(?m)^both are kept in (.*)", result.out)[1])
    assert all((kept / name).stat().st_size for name in ("first.so", "second.so"))
    assert len(os.listdir(work / "tmp")) == 1, "more is left behind"


def test_compiler_that_fails(twice, odd_nvrtc):
    # Where a sandbox forbids to fix addresses, the helper goes on; then a difference says that this may be why.
    twice("--toolchain", odd_nvrtc("crash"), "--arch", "sm_90").ends(5, "the compiler crashed (SIGSEGV)")
    twice("--arch", "hopper").ends(2)


@pytest.mark.ctest(fixtures="torch_env")
@pytest.mark.parametrize("kind", ["nvrtc_12", "nvcc", "torch_flavor"])
def test_whole_scan(scankit, work, kind):
    if not addresses_can_be_fixed():
        pytest.skip("addresses cannot be fixed here, and NVRTC's output depends on them")
    scan = Builds(scankit, work, "selective_scan_cuda")
    if kind == "nvrtc_12":
        words = ["--toolchain", shell_or_skip("fx_nvrtc_12")]
    elif kind == "nvcc":
        if not re.search(r"(?m)^nvcc [0-9.]*: /", scankit("build", "--list-toolchains").out):
            pytest.skip("no nvcc here")
        words = ["--toolchain", "nvcc"]
    else:
        words = ["--flavor", "torch", "--python", python_with_torch()]
    scan("--check-reproducible", "--arch", "sm_90", *words, timeout=1700).ends(0, "reproducible: two builds gave the same")
    scan.remove_caches()
