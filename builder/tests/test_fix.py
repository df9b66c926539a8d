# SPDX-License-Identifier: Apache-2.0
"""fix, pip, restore and SIGKILL in a real environment with a real torch."""
import base64
import csv
import hashlib
import os
import signal
import time

import pytest

from building import may_trace
from fixtures import python_with_torch
from program import run_program

pytestmark = pytest.mark.ctest(group="builder", fixtures="torch_env")
MODULE = "causal_conv1d_cuda"  # compiled in a tenth of the time of the scan, which ci.story and printed.* repair
SM_90 = ["--arch", "sm_90", "--yes"]


@pytest.fixture
def broken(repair):
    """broken(): an environment with a web page in the place of the module. Each call makes it anew."""
    def broken():
        here = repair("tested")
        here.stale = here.break_module(MODULE)
        return here
    return broken


@pytest.mark.ctest(timeout=1500)
def test_fix_end_to_end(broken, work):
    here = broken()
    old = repaired_and_taken_back(here, work)
    if run_program(python_with_torch(), "-m", "pip", "--version").status == 0:
        removed_by_pip(here, old)
    into_a_directory(here, work / "elsewhere", old)
    killed_while_it_verifies(broken(), work / "progress")


def repaired_and_taken_back(here, work):
    """Returns the state before."""
    os.link(here.stale, work / "hard-link")
    old = here.state()
    plan = here.fix("--dry-run").ends(0, f"$SITE/{MODULE}.abi3.so").ends(0, f"$SITE = {here.site}")
    plan.ends(0, f"scankit restore --python {here.python}")  # a command can be pasted
    assert not (here.env.folder / ".scankit").exists() and here.state() == old, "a dry run leaves a trace"
    here.fix().ends(1, "--yes")  # there is no terminal to ask
    here.fix(*SM_90).ends(0)
    new = here.state()
    assert here.module_file(MODULE) == str(here.site / f"{MODULE}.abi3.so")
    backup = [path for path in (here.env.folder / ".scankit/backup").glob("*/*") if path.is_file()]
    assert any("DOCTYPE" in path.read_text(errors="replace") for path in backup), backup
    assert "DOCTYPE" in (work / "hard-link").read_text(), "a hard link to the stale file has other bytes"
    here.fix(*SM_90).ends(0, "nothing to do")
    here.fix("--arch", "compute_75", "--yes").ends(0)
    here.restore().ends(0)
    assert here.state() == new, "restore does not go back to the first fix"
    here.restore().ends(0)
    assert here.state() == old, "restore does not go back to the start"
    here.restore().ends(0, "nothing to restore")
    return old


def removed_by_pip(here, old):
    """pip lists it and removes all of it; then restore still brings the old file back."""
    here.fix(*SM_90).ends(0)

    def pip(*words):
        return run_program(python_with_torch(), "-m", "pip", "--disable-pip-version-check", "--python", here.python, *words).ends(0)

    assert "scankit-causal-conv1d-cuda" in pip("list").out
    record_is_whole(here.site)
    pip("uninstall", "-y", "scankit-causal-conv1d-cuda")
    left = [path.name for path in here.site.iterdir() if "scankit" in path.name or path.name == f"{MODULE}.abi3.so"]
    assert not left, f"pip uninstall leaves {left}"
    here.restore().ends(0)
    assert here.state() == old


def record_is_whole(site):
    """RECORD has the hash of every file."""
    [record] = site.glob("scankit_causal_conv1d_cuda-*.dist-info/RECORD")
    listed = set()
    with open(record, newline="") as file:
        for path, hashed, size in csv.reader(file):
            listed.add(path)
            if path.endswith("/RECORD"):
                continue
            data = (site / path).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert hashed == f"sha256={digest}" and int(size) == len(data), path
    present = {str(path.relative_to(site)) for path in record.parent.iterdir()}
    assert listed == present | {f"{MODULE}.abi3.so"}, listed ^ present


def into_a_directory(here, target, old):
    here.fix(*SM_90, "--target", target).ends(0, f"PYTHONPATH={target}")
    assert here.state() == old, "the environment was touched"


def whole_after_a_kill(here, old):
    """What imports is the old file or the new one, and restore leaves the old state."""
    assert here.module_file(MODULE) in ("", str(here.site / f"{MODULE}.abi3.so"))
    here.restore().ends(0)
    assert here.state() == old


@pytest.mark.ctest(labels="matrix;e2e", timeout=1500)
def test_fix_killed_between_steps(broken):
    """The journal and the staging are killed at every call by transaction_test; here the steps that the environment sees."""
    if not may_trace():
        pytest.skip("no strace that may trace here")
    for step in range(1, 10):
        here = broken()
        old = here.state()
        # Only scankit itself is traced: its children are the compiler and Python.
        here.scankit = here.scankit.with_(before=["strace", "-o", "/dev/null", "-e", f"inject=renameat2:signal=KILL:when={step}"])
        result = here.fix(*SM_90)
        here.scankit = here.scankit.with_(before=[])
        if result.status != -signal.SIGKILL:
            break
        whole_after_a_kill(here, old)
    assert step == 4, f"killed at {step - 1} steps, not three"


def killed_while_it_verifies(here, progress):
    old = here.state()
    fixer = here.scankit.start("fix", "--python", here.python, *SM_90, err=progress)
    while b"verifying" not in progress.read_bytes() and fixer.poll() is None:
        time.sleep(0.005)
    fixer.kill()
    fixer.wait()
    whole_after_a_kill(here, old)
    here.fix(*SM_90).ends(0)


@pytest.mark.ctest(timeout=300)
def test_fix_in_a_clone(repair, work, monkeypatch):
    """Of a package's repository: nothing that is installed needs the module, files of the current directory do."""
    here = repair("tested")
    package = work / "clone/causal_conv1d"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import causal_conv1d_cuda\n")
    monkeypatch.chdir(package.parent)
    here.fix("--yes").ends(0, "nothing to do")
    here.fix("--module", "causal_conv1d_cuda", "--dry-run").ends(0, "causal_conv1d_cuda.abi3.so for")
