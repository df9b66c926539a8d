# SPDX-License-Identifier: Apache-2.0
"""A real environment locked, exported, rebuilt by pip and by uv, and changed in every way that the lock must name; a package
index on the loopback that answers, stalls and goes away."""
import os
import shutil
import socket
from pathlib import Path

import pytest

from fixtures import run
from project import library, sha256, text_of

pytestmark = pytest.mark.ctest(group="envspec.lock", labels="matrix;e2e", timeout=300)


@pytest.fixture
def locked(project):
    """A project with its lock, and a copy of it in first.lock."""
    project.lock().ends(0)
    shutil.copy("scankit.lock", "first.lock")
    return project


def test_what_is_locked(project):
    project.lock().ends(0)
    alpha, beta = project.locked["distributions"][:2]
    assert alpha["artifact"]["sha256"] == sha256(project.index.alpha), "not the wheel of the index"
    assert beta["source"] == "here", "not made of what was built here"
    assert project.locked["libraries"][0]["sha256"] == sha256(project.site / "beta/_c.abi3.so")
    first = text_of("scankit.lock")
    project.lock().ends(0)
    assert text_of("scankit.lock") == first, "a second lock has other bytes"
    project.drift().ends(0)


def test_rebuilt(locked):
    for form, out in (("requirements", "requirements.txt"), ("pylock", "pylock.toml"), ("conda", "environment.yml"),
                      ("dockerfile", "Dockerfile")):
        locked.export(form, out).ends(0)
    for way in ("pip", "uv", "pylock"):
        python = locked.new_python(way)
        locked.rebuild(way, python).ends(0)
        locked.drift("--python", python).ends(0)
        run(python, "-c", "import alpha, beta")
    [wheel] = Path("scankit-wheels").glob("beta-*.whl")
    assert f"{sha256(wheel)} scankit-wheels/beta-2.0" in text_of("Dockerfile"), "the Dockerfile does not check the wheel"


def test_files_of_the_user(locked):
    """An export overwrites an older export, and no other file; then it writes nothing else either."""
    Path("mine").mkdir()
    Path("mine/requirements.txt").write_text("numpy\n")
    for form, out in (("requirements", "requirements.txt"), ("dockerfile", "Dockerfile"), ("pixi", "pixi.toml"),
                      ("apptainer", "image.def"), ("devcontainer", "devcontainer.json")):
        result = locked.export(form, f"mine/{out}").ends(2, "mine/requirements.txt exists and was not written by scankit env export")
        assert not result.out and os.listdir("mine") == ["requirements.txt"], os.listdir("mine")
    assert text_of("mine/requirements.txt") == "numpy\n"
    locked.export("dockerfile", "own/requirements.txt").ends(2, "choose another one, such as --out own/Dockerfile")
    (locked.site / "beta/__init__.py").write_text("changed = 1\n")
    locked.export("dockerfile", "own/Dockerfile").ends(2, "beta cannot be repacked as a wheel: beta/__init__.py does not match its RECORD")
    assert not [path for path in Path("own").glob("*")], "something was written before the refusal"
    (locked.site / "beta/__init__.py").write_text("")
    for form in ("dockerfile", "devcontainer", "dockerfile"):
        locked.export(form, "own/" + ("Dockerfile" if form == "dockerfile" else "devcontainer.json")).ends(0)
    assert sorted(os.listdir("own")) == ["Dockerfile", "devcontainer.json", "requirements.txt", "scankit-wheels"]


def test_fetched(locked):
    alpha = locked.index.alpha
    locked.env("fetch", "--out", "wheels").ends(4)
    assert Path("wheels", alpha.name).read_bytes() == alpha.read_bytes()
    os.truncate(alpha, 200 << 20)
    locked.env("fetch", "--out", "longer").ends(1, "the file on the server has 209715200 bytes, expected ")
    assert sum(file.stat().st_blocks * 512 for file in Path("longer").rglob("*")) < 1000 << 10, "it was downloaded all the same"


def test_drift(locked):
    module = locked.site / "beta/_c.abi3.so"
    kept = module.read_bytes()
    library(module, 43)
    locked.drift().ends(7, "drift_lock_file")
    module.write_bytes(kept)
    beside = module.with_name("_c.cpython-311-x86_64-linux-gnu.so")
    beside.write_bytes(kept)
    locked.drift().ends(0, "drift_lock_file_extra")
    beside.unlink()
    locked.install("alpha==1.1")
    locked.drift().ends(7, "locks alpha 1.0, but 1.1 is installed")
    locked.uninstall("alpha")
    locked.drift().ends(7, "locks alpha 1.0, which is not installed")
    locked.install("alpha==1.0")
    locked.drift().ends(0)


def test_bad_locks(locked):
    lock = Path("scankit.lock")
    whole = lock.read_text()
    lock.write_text(whole.replace('"version": "1.0"', '"version": "1.2"'))
    locked.drift().ends(2, "scankit.lock was edited after scankit wrote it: distributions")
    locked.env("export", "requirements").ends(2)
    lock.write_text(whole[:500])
    locked.drift().ends(2)
    lock.unlink()
    locked.drift().ends(2, "scankit env lock")


def test_index_away(locked):
    Path("scankit.lock").unlink()
    locked.index.stop()
    locked.lock("--timeout", 20).ends(0, "no hash of alpha==1.0: the index could not be reached")
    result = locked.env("export", "requirements").ends(2, "no hash of alpha==1.0")
    result.ends(2, "run scankit env lock where the index can be reached, or leave them out with --partial")
    locked.export("conda", "part/environment.yml").ends(2)
    locked.export("requirements", "part/requirements.txt", "--partial").ends(0)
    shutil.copy("first.lock", "scankit.lock")
    locked.lock("--offline").ends(0)
    assert text_of("scankit.lock") == text_of("first.lock"), "offline the old lock's hashes are lost"


def test_index_stalls(project):
    """One that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        project.index.stop()
        project.index.use(f"http://127.0.0.1:{server.getsockname()[1]}")
        project.lock("--timeout", 2).ends(0, "the index did not answer within 2 seconds")
