# SPDX-License-Identifier: Apache-2.0
"""fix by the modules that are bundled with scankit, as its wheel puts them. What a compile would need is not there: PATH is empty,
the cache cannot be written."""
import shutil

import pytest

from fixtures import python_with_torch
from program import Scankit, run_program

MODULE = "causal_conv1d_cuda"


@pytest.fixture
def bundle(scankit, work):
    """A scankit with a module for sm_75 and its PTX: (the program, the module's file)."""
    modules, program = work / "wheel/share/scankit/modules", work / "wheel/bin/scankit"
    for folder in (modules, program.parent, work / "empty"):
        folder.mkdir(parents=True)
    shutil.copy(scankit.path, program)
    result = Scankit(program)("build", "--python", python_with_torch(), "--arch", "sm_75,compute_75", "--module", MODULE,
                              "--out", f"{modules}/", timeout=600)
    if result.status and "NVRTC (libnvrtc.so.12 or .13) not found" in result.err:
        pytest.skip("no NVRTC on this machine")
    result.ends(0)
    (work / "link").symlink_to(program)
    return program, modules / f"{MODULE}.abi3.so"


@pytest.mark.ctest(group="builder", labels="matrix;e2e", timeout=600, fixtures="torch_env")
def test_fix_prebuilt(repair, bundle, work):
    program, bundled = bundle
    here = repair("tested")
    here.break_module(MODULE)
    old = here.state()

    def fix(*words):
        return run_program("/usr/bin/env", "-i", f"HOME={work}", f"PATH={work / 'empty'}", "LC_ALL=C.UTF-8", work / "link", "fix",
                           "--python", here.python, "--module", MODULE, "--cache-dir", "/proc/none", *words)

    fix("--dry-run").ends(0, f"install  {MODULE}.abi3.so for sm_75 compute_75 (bundled, built by nvrtc ")
    fix("--dry-run", "--arch", "sm_90").ends(0, f"build    {MODULE}.abi3.so for sm_90")
    fix("--yes").ends(0)
    assert (here.site / bundled.name).read_bytes() == bundled.read_bytes()
    here.runs(f"""
import torch, {MODULE} as m
info = m.scankit_info()
assert len(info["images"]) == 2 * 4 and not info["images_problem"], info
""")
    Scankit(program)("restore", "--python", here.python).ends(0)
    assert here.state() == old

    # One byte of one image: what is wrong is told, and a build repairs instead.
    with open(bundled, "r+b") as file:
        file.seek(bundled.stat().st_size // 2)
        file.write(b"X")
    result = fix("--dry-run").ends(0, "which is bundled with scankit, is damaged:")
    result.ends(0, f"build    {MODULE}.abi3.so")
