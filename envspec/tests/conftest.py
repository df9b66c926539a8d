# SPDX-License-Identifier: Apache-2.0
"""Loads the end-to-end suite's fixtures (doctor/tests/e2e/suite.py), and adds what specs and locks are tested with."""
import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [str(REPOSITORY / folder) for folder in ("doctor/tests/e2e", "builder/tests", "envspec/tests")]
pytest_plugins = ["suite"]


@pytest.fixture
def installers():
    """The bin directory of a venv with uv and py-rattler. Before any test changes HOME: the cache is below it."""
    from fixtures import host_python, shell_or_skip
    host_python()
    return Path(shell_or_skip("fx_installers")) / "bin"


@pytest.fixture
def index(installers, work, monkeypatch):
    """A package index on the loopback, which pip and uv ask alone; see project.py."""
    from project import Index, isolate
    isolate(work, monkeypatch)
    index = Index(work, monkeypatch)
    index.serve()
    yield index
    index.stop()


@pytest.fixture
def bare_project(scankit, installers, index, work, monkeypatch):
    """A project without an environment yet; its directory is the current one. See project.py."""
    from project import Project
    (work / "project").mkdir()
    monkeypatch.chdir(work / "project")
    project = Project(scankit, work, installers, index)
    yield project
    project.remove_environments()


@pytest.fixture
def project(bare_project):
    """A project whose environment has alpha from the index and beta from no index."""
    bare_project.make_environment("env")
    bare_project.install_alpha_and_beta()
    return bare_project


@pytest.fixture
def create(project):
    """A project with its lock, whose own wheels are next to it, and a package with programs."""
    from creating import Create
    from lock_wheels import wheel
    files = {"tool.py": b"def hello():\n    print('hello')\n", "tool-1.0.dist-info/entry_points.txt": b"[console_scripts]\nhello = tool:hello\n",
             "tool-1.0.data/scripts/greet": b"#!python\nimport tool\ntool.hello()\n"}
    wheel(project.index.served, "tool", "1.0", "py3-none-any", files)
    project.index.stop()
    project.index.serve()
    project.install("tool==1.0")
    project.lock().ends(0)
    shutil.copy("scankit.lock", "good.lock")
    project.export("requirements", "requirements.txt").ends(0)
    shutil.rmtree(project.work / "cache", ignore_errors=True)
    return Create(project)


@pytest.fixture
def conda_program(installers):
    """A real conda: the one that SCANKIT_TEST_CONDA names, or one from the index. Before any test changes HOME, as `installers`."""
    from fixtures import shell_or_skip
    if os.environ.get("SCANKIT_TEST_CONDA"):
        return Path(os.environ["SCANKIT_TEST_CONDA"])
    return Path(shell_or_skip("fx_conda")) / "condabin/conda"


@pytest.fixture
def conda(conda_program, bare_project, work, monkeypatch):
    """A project whose environment is conda's, with alpha from the index and beta from no index; see conda_project.py."""
    from conda_project import CondaProject
    conda = CondaProject(bare_project, conda_program, work, monkeypatch)
    yield conda
    conda.channel_server.shutdown()
    conda.channel_server.server_close()
    shutil.rmtree(work / "pkgs", ignore_errors=True)
