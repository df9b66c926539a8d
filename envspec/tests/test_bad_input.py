# SPDX-License-Identifier: Apache-2.0
"""What strangers and accidents put before `env`: files that change while they are hashed, bombs, forged locks, and specs and
locks that name what they must not reach."""
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from program import run_program
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.bad_input", labels="matrix;e2e", timeout=300)


@pytest.fixture
def project(project):
    """With its lock, and a copy in good.lock."""
    project.lock().ends(0)
    shutil.copy("scankit.lock", "good.lock")
    return project


@pytest.fixture
def bounded(scankit):
    """scankit must answer within seconds, and in little memory."""
    return scankit.with_(before=["sh", "-c", 'ulimit -v 1500000 && exec timeout 20 "$@"', "-"])


@contextlib.contextmanager
def somebody_writes(path):
    """A byte each millisecond."""
    writer = subprocess.Popen(["sh", "-c", 'while :; do printf x && sleep 0.001; done >>"$1"', "-", path])
    try:
        yield
    finally:
        writer.kill()
        writer.wait()


def test_file_that_grows(project):
    """No hash of a state that never was."""
    library = project.site / "growing.so"
    library.touch()
    os.truncate(library, 300000000)
    Path("scankit.lock").unlink()
    with somebody_writes(library):
        result = project.lock("--offline", uv_on_path=False)
    assert result.status != 0 and "growing.so changed while it was read" in result.text, result
    assert "wait until the installer is finished," in result.text and not os.path.exists("scankit.lock"), result
    project.lock("--offline").ends(0)
    with somebody_writes(library):
        project.drift().ends(4)


def nested_aliases():
    """A billion laughs."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for letter in "bcdefghij":
        lines.append(f"{letter}: &{letter} [{','.join(['*' + chr(ord(letter) - 1)] * 9)}]")
    return "\n".join(lines) + "\n"


def test_specs_that_are_bombs(project, bounded):
    many_keys = "".join(f"key{i}: 1\n" for i in range(1000000))
    for text, reason in ((nested_aliases(), "anchors"), ("schema: 1\n" + many_keys, "longer"),
                         ("schema: 1\nx: " + "[" * 200000, "yaml:2:5:")):
        Path("bomb.yaml").write_text(text)
        bounded("env", "check", "--python", project.python, "--spec", "bomb.yaml").ends(2, reason)
        bounded("env", "diff", project.python, "bomb.yaml").ends(2, reason)


def test_locks_that_are_bombs(project, bounded):
    good = project.locked
    for change, reason in (({f"key{i}": i for i in range(1000000)}, "parts"), ({"schema": "2.0"}, "schema"),
                           (None, "levels"), ({"long": "x" * (65 << 20)}, "bomb.lock")):
        text = json.dumps({**good, **change}) if change else '{"schema": "1.0", "x": ' + "[" * 1000000
        Path("bomb.lock").write_text(text)
        for words in (["check", "--python", project.python, "--lock"], ["diff", project.python], ["export", "requirements", "--lock"],
                      ["fetch", "--lock"]):
            bounded("env", *words, "bomb.lock").ends(2, reason)


def test_newer_snapshot(project, bounded):
    project.scankit("snapshot", "--python", project.python, "--out", "here.json").ends(0)
    Path("newer.json").write_text(text_of("here.json").replace('"schema": 1', '"schema": 99'))
    bounded("env", "diff", "newer.json", "good.lock").ends(2, "newer")
    bounded("env", "init", "--from", "newer.json", "--out", "x.yaml").ends(2, "newer")
    assert not os.path.exists("x.yaml")


def forge(pointer, value):
    """forged.lock, by somebody who knows how the hashes of the parts are made."""
    lock = at = json.loads(text_of("good.lock"))
    *way, last = pointer.strip("/").split("/")
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) else last] = value
    del lock["integrity"]
    lock["integrity"] = {
        name: hashlib.sha256(json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
        for name, part in lock.items()}
    Path("forged.lock").write_text(json.dumps(lock))


def test_forged_locks(project, bounded, work):
    forge("/distributions/1/version", "2.1")
    project.env("check", "--python", project.python, "--lock", "forged.lock").ends(7)  # it is read: integrity is no signature
    (work / "secret.whl").write_text("secret\n")
    for name in ("../../secret.whl", str(work / "secret.whl"), 'x";touch marked;".whl'):
        forge("/distributions/1/artifact/file", name)
        bounded("env", "export", "dockerfile", "--lock", "forged.lock", "--out", "Dockerfile").ends(2, "which is not possible")
    forge("/libraries/0/path", "../../../../etc/passwd")
    bounded("env", "check", "--lock", "forged.lock", "--python", project.python).ends(2, "which is not possible")
    forge("/python/version", "3.11\nRUN touch marked")
    bounded("env", "export", "dockerfile", "--lock", "forged.lock").ends(2, "which is not possible")
    assert not list(Path().rglob("marked"))


def test_spec_of_a_stranger(project):
    """It reaches neither a command nor a file beyond the environment."""
    Path("strange.yaml").write_text(
        'schema: 1\npython: {version: "3.*"}\nextensions:\n  marked.inner: {distribution: marked-by-spec}\n')
    tracer = shutil.which("strace")
    if not tracer or run_program(tracer, "-o", "/dev/null", "true").status:
        pytest.skip("no strace that may trace here")
    traced = project.scankit.with_(before=[tracer, "-f", "-e", "trace=execve,open,openat,stat,newfstatat,access,readlink", "-o", "trace"])
    traced("env", "check", "--python", project.python, "--spec", "strange.yaml")
    marked = [line for line in text_of("trace").splitlines() if "marked" in line]
    reached = [line for line in marked if "strange.yaml" not in line]
    assert reached, "what it names is not looked for"
    # Where `import` looks: this directory, the environment and its Python.
    own = (f"{os.getcwd()}/marked", str(project.site), str(Path(os.path.realpath(project.python)).parents[1]))
    assert not [line for line in reached if not any(place in line for place in own)], reached
    assert not [line for line in marked if "execve" in line], marked
    assert not list(Path().rglob("marked"))
