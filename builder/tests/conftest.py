# SPDX-License-Identifier: Apache-2.0
"""Loads the end-to-end suite's fixtures (doctor/tests/e2e/suite.py), and adds what builds and repairs are tested with."""
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / folder) for folder in ("doctor/tests/e2e", "builder/tests")]
pytest_plugins = ["suite"]


@pytest.fixture
def convolution(scankit, work):
    """Builds of the smallest module: convolution(OPTION...) into WORK/made, with the cache WORK/cache. See building.py."""
    from building import Builds
    builds = Builds(scankit, work, "causal_conv1d_cuda")
    yield builds
    builds.remove_caches()


@pytest.fixture
def need_nvrtc(scankit, work):
    """The path of the first NVRTC of this machine; a skip where there is none."""
    from building import first_nvrtc
    found = first_nvrtc(scankit, work / "listed")
    if not found:
        pytest.skip("no NVRTC on this machine")
    return found


@pytest.fixture
def odd_nvrtc(need_nvrtc, work):
    """odd_nvrtc(HOW): the path of an NVRTC that is the real one, and odd in one way (testdata/odd_nvrtc.c says which)."""
    from building import make_odd_nvrtc
    return lambda how: make_odd_nvrtc(work, need_nvrtc, how)


@pytest.fixture
def repair(scankit, environment, work, monkeypatch):
    """Environments that `scankit fix` is to repair: repair("tested"), with a torch as Environment.make has it. See repairs.py."""
    import os
    import shutil
    from repairs import Repair
    # A cache of compiled images that outlives the test, where one is named: these tests are not about compiling.
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("SCANKIT_FIX_CACHE") or str(work / "cache"))
    yield lambda way="tested", name="env": Repair(scankit, environment(way, name))
    shutil.rmtree(work / "cache", ignore_errors=True)
