# SPDX-License-Identifier: Apache-2.0
"""An nvcc whose cicc crashes, hangs or leaks the time. The toolkit is the real one, by links, with a wrapper in the place of cicc, the
part that compiles device code."""
import os
import re
import shlex
import shutil
import time
from pathlib import Path

import pytest

from fixtures import run

pytestmark = pytest.mark.ctest(group="builder.nvcc_faults", labels="matrix;large;e2e", timeout=1800, processors=2)


@pytest.fixture
def toolkit(convolution, work, monkeypatch):
    """toolkit(NAME, LINE): the nvcc of a toolkit whose cicc is that line of shell; $cicc is the real one."""
    listed = convolution("--list-toolchains", "--toolchain", "nvcc")
    found = re.search(r"(?m)^nvcc [^:]*: (.*)", listed.out)
    root = Path(os.path.realpath(found[1])).parents[1] if found else Path("/nonexistent")
    if not os.access(root / "bin/nvcc", os.X_OK) or not os.access(root / "nvvm/bin/cicc", os.X_OK):
        pytest.skip("no whole nvcc on this machine")
    (work / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))

    def toolkit(name, line):
        at = work / name
        at.mkdir()
        run("cp", "-as", f"{root}/.", f"{at}/")
        for folder in (at / "bin", at / "nvvm/bin"):
            shutil.rmtree(folder)
        shutil.copytree(root / "bin", at / "bin", symlinks=True)
        cicc = at / "nvvm/bin/cicc"
        cicc.parent.mkdir()
        cicc.write_text(f"#!/bin/bash\ncicc={shlex.quote(str(root / 'nvvm/bin/cicc'))}\n{line}\n")
        cicc.chmod(0o755)
        return at / "bin/nvcc"
    yield toolkit
    for folder in work.iterdir():
        if (folder / "nvvm").is_dir():
            shutil.rmtree(folder)


@pytest.fixture
def build_by(convolution):
    """build_by(NVCC, OPTION...)"""
    return lambda nvcc, *words: convolution("--toolchain", nvcc, "--arch", "sm_90", *words)


def left_nothing(convolution):
    assert not os.listdir(convolution.work / "tmp"), os.listdir(convolution.work / "tmp")
    assert not (convolution.out / convolution.file).exists()


def ended(process):
    """A dead one stays in /proc until its new parent, the first process of this machine or container, asks for it."""
    try:
        return bool(re.search(r"(?m)^State:\s*[ZX]", Path(f"/proc/{process}/status").read_text()))
    except OSError:
        return True


def test_crash(convolution, toolkit, build_by):
    result = build_by(toolkit("crash", "kill -SEGV $$")).ends(5)
    result.has_line(r"compiling conv_[a-z0-9]* for sm_90 failed: the compiler crashed \(SIGSEGV\)")
    left_nothing(convolution)
    build_by(toolkit("killed", "kill -KILL $$")).ends(5, "the compiler was killed (SIGKILL), most likely for lack of memory")


HANGS = 'echo $$ >"$0.pid"; exec sleep 1000'


def test_hang(convolution, toolkit, build_by, work):
    result = build_by(toolkit("hang", HANGS), "--timeout", 3, "-j", 1)
    result.ends(5, "the compiler exceeded its time limit of 3 seconds and was killed")
    assert ended((work / "hang/nvvm/bin/cicc.pid").read_text().strip()), "it runs on"
    left_nothing(convolution)


def test_killed_builder(convolution, toolkit, build_by, work):
    """What nvcc started is not a child of scankit's, and nobody tells it that scankit was killed."""
    builder = convolution.start("--toolchain", toolkit("hang", HANGS), "--arch", "sm_90", "-j", 1)
    pid = work / "hang/nvvm/bin/cicc.pid"
    while not (pid.exists() and pid.read_text().strip()) and builder.poll() is None:
        time.sleep(0.05)
    builder.kill()
    builder.wait()
    for _ in range(100):
        if ended(pid.read_text().strip()):
            break
        time.sleep(0.05)
    assert ended(pid.read_text().strip()), "the compiler runs on"
    build_by(toolkit("plain", 'exec "$cicc" "$@"')).ends(0)
    assert not os.listdir(work / "tmp"), "the next build does not remove what it left"


def test_leaks_the_time(toolkit, build_by):
    nvcc = toolkit("leak", """"$cicc" "$@" || exit
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo ".visible .global .align 4 .u32 leaked_time = $(date +%s);" >>"$2"; shift; done""")
    result = build_by(nvcc, "--check-reproducible").ends(1)
    assert re.search(r"image conv_f32 for sm_90: section \.nv\.global\.init differs .*, in symbol leaked_time", result.out), result
