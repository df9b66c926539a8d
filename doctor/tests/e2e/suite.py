# SPDX-License-Identifier: Apache-2.0
"""The fixtures of the end-to-end tests, and how a pytest run ends as a CTest test. See ../README.md.

A pytest plugin: the conftest.py of each directory of the suite (here, envspec/tests, builder/tests) loads it.
"""
import os
import shutil
from pathlib import Path

import pytest

from environment import Environment
from fault import load_faults, plant
from fixtures import REPOSITORY
from program import Scankit

SKIPPED = 77  # what CTest calls a skip (SKIP_RETURN_CODE)


def pytest_addoption(parser):
    parser.addoption("--build", default=REPOSITORY / "build/ci", type=Path,
                     help="the build tree whose scankit is tested (default: build/ci)")


def pytest_sessionfinish(session, exitstatus):
    """Where every test was skipped, CTest is told so; that none was run is an error of pytest's own (statuses 4 and 5)."""
    outcomes = session.config.pluginmanager.get_plugin("terminalreporter").stats
    if exitstatus == 0 and outcomes.get("skipped") and not outcomes.get("passed"):
        session.exitstatus = SKIPPED


@pytest.fixture(scope="session")
def build(request):
    """The build tree."""
    return request.config.getoption("--build").resolve()


@pytest.fixture(autouse=True)
def clean_variables(monkeypatch):
    """What the caller's shell has activated, and what pytest tells of itself, is no part of a test."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "GITHUB_ACTIONS",
                 "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def scankit(build):
    """Runs scankit: scankit("explain"), scankit.doctor("--python", python). See program.py."""
    return Scankit(build / "scankit")


@pytest.fixture
def modules(build):
    """The folder of objects that build_modules.sh compiled, for Environment.link_module."""
    return build / "fixtures/modules"


@pytest.fixture
def work(request, build, monkeypatch):
    """An empty folder of this test, the current one while it runs. What is left in it tells of a failure."""
    group = request.node.path.stem.removeprefix("test_")
    function, _, value = request.node.name.removeprefix("test_").rstrip("]").partition("[")
    name = "-".join(part for part in (function if not value or not group.startswith(function) else "", value) if part)
    folder = build / "e2e" / group / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder = folder.resolve()
    monkeypatch.chdir(folder)
    yield folder
    os.chdir("/")


@pytest.fixture
def environment(work, modules):
    """Makes scratch environments: environment("pth"), see Environment.make. They are removed at the end."""
    made = []

    def make(way="pth", name="env"):
        made.append(Environment.make(work / name, way, modules))
        return made[-1]
    yield make
    for one in made:
        one.remove()


@pytest.fixture
def fault(work, modules):
    """Plants a fault in an environment of its own: fault("missing_cudnn"), see fault.py."""
    load_faults()
    planted = []

    def make(name, way=None):
        planted.append(plant(name, work, modules, way))
        return planted[-1]
    yield make
    for one in planted:
        one.environment.remove()
