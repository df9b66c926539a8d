# SPDX-License-Identifier: Apache-2.0
"""`scankit build`: the same bytes each time, what a module says of itself, and for which GPUs it is built."""
import re
from pathlib import Path

import pytest

from building import addresses_can_be_fixed, units_of
from fixtures import MACHINES

pytestmark = pytest.mark.ctest(group="builder.build", timeout=900)
PTX = ["--arch", "compute_75"]


@pytest.fixture
def first(convolution):
    """The module, built into an empty cache."""
    result = convolution(*PTX, "--out", f"{convolution.work / 'first'}/")
    if result.status == 5 and "NVRTC (libnvrtc.so.12 or .13) not found" in result.err:
        assert "pip install nvidia-cuda-nvrtc" in result.text, result
        pytest.skip("no NVRTC on this machine")
    result.ends(0)
    return convolution.work / "first" / convolution.file


def manifest_and_key(convolution, module):
    """What a module says of itself, and a build of what it depends on."""
    assert convolution.manifest(module).ends(0).out == Path(f"{module}.json").read_text()
    convolution.manifest(convolution.scankit.path).ends(2)
    convolution(*PTX, "--explain").ends(0, "target: compute_75")
    convolution(*PTX, "--out", "/proc/none/m.so").ends(5)


@pytest.mark.ctest(processors=2)
def test_same_bytes(convolution, first, work):
    convolution(*PTX).ends(0, "are in the cache")
    assert (convolution.out / convolution.file).read_bytes() == first.read_bytes()
    for name in ("elsewhere", "tmp"):
        (work / name).mkdir()
    third = convolution.into("third", *PTX, "--cache-dir", work / "cache2", "-j", 1, cwd=work / "elsewhere",
                             variables={"TMPDIR": work / "tmp", "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    for entry in (convolution.cache / "objects").rglob("*"):
        if entry.is_file():
            with open(entry, "ab") as file:
                file.write(b"x")
    convolution(*PTX, "--out", f"{work / 'fourth'}/").ends(0, f"0 of {units_of('causal_conv1d')}")
    manifest_and_key(convolution, first)
    if not addresses_can_be_fixed():
        pytest.skip("addresses cannot be fixed here: builds from scratch are not compared")
    assert third.read_bytes() == first.read_bytes(), "elsewhere it has other bytes"
    assert Path(f"{third}.json").read_bytes() == Path(f"{first}.json").read_bytes(), "elsewhere its manifest is another"
    assert (work / "fourth" / convolution.file).read_bytes() == first.read_bytes(), "after damage it has other bytes"


def test_gpu_of_another_machine(convolution, need_nvrtc, work):
    machine = MACHINES / "h200_torch211/snapshot.json"
    convolution("--list-toolchains", "--for", machine).ends(0, "selected: builds sm_90")
    convolution("--for", machine, "--arch", "sm_80").ends(2)
    (work / "none.json").write_text('{"schema": 1}\n')
    convolution("--for", work / "none.json").ends(2, "--arch sm_90")


def test_list_of_compilers(convolution, need_nvrtc):
    result = convolution("--list-toolchains", *PTX).ends(0, "builds: sm_").ends(0, "selected: builds compute_75")
    assert len(re.findall(r"(?m)^    selected", result.out)) == 1, result
    result = convolution("--list-toolchains", "--arch", "sm_20").ends(5)
    not_selected = re.findall(r"(?m)^    not selected", result.out)
    assert len(not_selected) == len(re.findall(r"(?m)^[^ \n]", result.out)), f"one does not say why: {result!r}"
    convolution("--arch", "hopper").ends(2)
    convolution("--arch", "sm_20").ends(5)
