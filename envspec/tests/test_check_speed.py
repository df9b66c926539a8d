# SPDX-License-Identifier: Apache-2.0
"""What `env check` costs in an environment of 300 packages, in time of the processor, since a test may share the machine: the
goal is 150 ms, and above 225 it fails. Caches are warm, as they are for the second check."""
import os
import statistics
import subprocess
from pathlib import Path

import pytest

from fixtures import shell_or_skip

GOAL = 0.150
LOADED = 1.5  # others on the same cores evict caches and halve the clock: a factor for that


def processor_time(*command):
    """Of one run and all that it starts; it must succeed."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


@pytest.mark.ctest(group="envspec.check", labels="matrix;e2e", timeout=900)
def test_300_packages(scankit, work, monkeypatch):
    environment = Path(shell_or_skip("fx_many_packages"))
    packages = list(environment.glob("lib/python3*/site-packages/*.dist-info"))
    assert len(packages) >= 300, len(packages)
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    monkeypatch.chdir(work)
    python = environment / "bin/python"
    scankit("env", "lock", "--offline", "--python", python).ends(0)
    check = (scankit.path, "env", "check", "--python", python, "--lock", "scankit.lock")
    processor_time(*check)
    times = sorted(processor_time(*check) for _ in range(21))
    print(f"{len(packages)} packages: median {statistics.median(times) * 1e3:.0f} ms of 21, {times[0] * 1e3:.0f} to {times[-1] * 1e3:.0f}")
    assert statistics.median(times) <= GOAL * LOADED, times
