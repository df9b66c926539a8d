# SPDX-License-Identifier: Apache-2.0
"""A lock by pip's `install --dry-run --report`: an old pip and the newest, an index in JSON and one in HTML, the user's own
settings, what an index lacks, an index that is away; and all that is done with a lock where there is no network at all."""
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from fixtures import shell_or_skip
from program import run_program
from project import sha256, text_of

pytestmark = pytest.mark.ctest(group="envspec.lock_pip", labels="matrix;e2e", timeout=600)


@pytest.fixture
def newest_pip():
    """A directory with the wheel of pip 26.3. Before `project`: the download needs the caller's index."""
    return shell_or_skip("fx_packages", "pip==26.3")


@pytest.fixture
def project(bare_project, work):
    """With a pip, alpha and beta; the index has sources of delta, which leave a mark when they are built."""
    source = work / "delta-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"""\
open({str(work / "built")!r}, "w")
from setuptools import setup
setup(name="delta", version="1.0")
""")
    with tarfile.open(bare_project.index.served / "delta-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "delta-1.0")
    bare_project.index.stop()
    bare_project.index.serve()
    bare_project.make_environment("env", pip=True)
    bare_project.pip("install", "-q", "alpha==1.0")
    bare_project.pip("install", "-q", "--no-index", "--no-deps", bare_project.index.beta)
    return bare_project


@pytest.fixture
def with_newest_pip(newest_pip, project):
    project.pip("install", "-q", "--no-index", "--find-links", newest_pip, "pip==26.3")
    return project


def lock(project, *words):
    """No uv is on PATH: pip is asked."""
    return project.lock(*words, uv_on_path=False)


def locked_by_pip(project, monkeypatch):
    """Locks the environment, gamma and delta in it, with the same bytes each time."""
    for name in ("gamma", "delta"):
        project.pip("install", "-q", "--no-index", "--find-links", project.index.own, name)
    result = lock(project).ends(0, "asking pip for the files")
    assert project.artifact("alpha") == sha256(project.index.alpha), "not the wheel of the index"
    result.ends(0, "no hash of gamma==3.0: the index has no wheel of this version")
    result.ends(0, "scankit: pip: No matching distribution found for gamma==3.0")
    delta = project.distribution("delta")
    assert (delta["source"], delta["artifact"]["file"][-4:]) == ("here", ".whl"), "built from the index's archive, but not packed"
    assert not (project.work / "built").exists(), "the archive was built"
    assert project.distribution("beta")["source"] == "here"
    first = text_of("scankit.lock")
    lock(project).ends(0)
    assert text_of("scankit.lock") == first, "a second lock has other bytes"
    silent = project.work / "quiet.conf"
    silent.write_text("[global]\nquiet = 3\nrequire-virtualenv = true\n")
    with monkeypatch.context() as settings:
        settings.setenv("PIP_CONFIG_FILE", str(silent))
        lock(project).ends(0)
    assert text_of("scankit.lock") == first, "settings that silence pip change the lock"
    project.drift().ends(0)


def test_html_index(project, monkeypatch):
    project.index.stop()
    project.index.serve(html=True)
    locked_by_pip(project, monkeypatch)


def test_pip_of_the_python(project, monkeypatch):
    """And uv, where it is on PATH: it is quicker, and knows the index where it was told of one."""
    locked_by_pip(project, monkeypatch)
    by_pip = re.findall(r'"sha256": "[0-9a-f]*"', text_of("scankit.lock"))
    Path("scankit.lock").unlink()
    result = project.lock().ends(0, "asking uv for the files")
    result.ends(0, "asking pip for the files")  # for what uv lacks
    assert re.findall(r'"sha256": "[0-9a-f]*"', text_of("scankit.lock")) == by_pip
    assert not (project.work / "built").exists(), "the archive was built"
    Path("scankit.lock").unlink()
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    result = project.lock().ends(0)
    assert "asking uv" not in result.err, "the index was told to pip alone"


def test_changed_after_installation(project):
    """It cannot be packed; the archive on the index is still known by its hash."""
    project.pip("install", "-q", "--no-index", "--find-links", project.index.own, "delta")
    with open(next(project.site.glob("delta*.py")), "a") as file:
        file.write("# mine\n")
    lock(project).ends(0)
    archive = sha256(project.index.served / "delta-1.0.tar.gz")
    assert project.artifact("delta") == archive and project.distribution("delta")["source"] == "index"
    project.export("requirements", "source.txt", "--partial").ends(0)
    assert archive in text_of("source.txt"), "an export does not have its hash"


def test_newest_pip(with_newest_pip, monkeypatch, work):
    """Then with the user's index, with the user's password, from pip.conf."""
    project = with_newest_pip
    locked_by_pip(project, monkeypatch)
    project.pip("uninstall", "-q", "-y", "gamma", "delta")
    Path("scankit.lock").unlink()
    monkeypatch.delenv("PIP_INDEX_URL")
    settings = work / "home/.config/pip/pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nindex-url = {project.index.server.url.replace('//', '//me:hidden@')}/simple\n")
    lock(project).ends(0)
    assert project.artifact("alpha") == sha256(project.index.alpha)
    assert "hidden" not in text_of("scankit.lock")


@pytest.fixture
def cut_off():
    """The words before a command that run it with no network; a machine that forbids namespaces has the closed port of the index instead."""
    away = ["unshare", "--net", "--map-root-user"]
    if run_program(*away, "true").status:
        print("no namespace without a network can be made: only the index is away")
        away = []
    return away


def test_without_network(with_newest_pip, scankit, cut_off):
    project = with_newest_pip
    lock(project).ends(0)
    project.export("requirements", "requirements.txt", "--partial").ends(0)
    shutil.rmtree("scankit-wheels")
    project.env("fetch", "--out", "scankit-wheels").ends(4)  # all but the wheel of pip
    project.export("requirements", "requirements.txt", "--partial").ends(0)
    project.index.stop()
    project.scankit = scankit.with_(before=cut_off)

    def known():
        return [(one["name"], one["artifact"]) for one in project.locked["distributions"]], project.locked["libraries"]

    before = known()
    for words in (["--offline"], ["--timeout", 30]):
        project.env("lock", "--python", project.python, *words).ends(0)
        assert known() == before, f"with no network the old lock's hashes are lost: {words}"
    project.drift().ends(0)
    for form in ("requirements", "conda", "dockerfile", "pylock"):
        project.export(form, f"there/{form}", "--partial").ends(0)
    rebuilt = project.new_python("rebuilt", pip=True)
    Path("rest.txt").write_text(re.sub(r"(?m)^pip==[^\n]*\n(?:(?!.*hash).*\n)*.*hash.*\n", "", text_of("requirements.txt")))
    run_program(*cut_off, rebuilt, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--require-hashes", "-r", "rest.txt").ends(0)
    project.drift("--python", rebuilt).ends(0)
    Path("scankit.lock").unlink()
    project.env("lock", "--python", project.python, "--timeout", 60).ends(0, "no hash of alpha==1.0: the index could not be reached")
    assert project.locked["libraries"][0]["sha256"] == sha256(project.site / "beta/_c.abi3.so")
