# SPDX-License-Identifier: Apache-2.0
"""Environments made from a lock and from a spec: by uv and by pip, with and without an index, and everything that can go wrong:
wheels that are missing or were changed, a full disk, a directory that is taken, a kill at any moment."""
import glob
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from creating import PYTHON, left_behind, made_at, record_of
from fixtures import need_root, run, site_of
from lock_wheels import wheel
from program import run_program
from project import sha256, text_of
from test_bad_input import forge

pytestmark = pytest.mark.ctest(group="envspec.create", labels="matrix;e2e", timeout=600)

@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.ctest(labels="ci;e2e")
def test_from_lock(create, installer, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    result = create("new", "--json", uv=installer == "uv").ends(0)
    assert not list(Path("new").rglob("*.pyc")), "byte code names the directory that it was made in"
    answer = result.json
    assert answer["state"] == "created" and answer["installer"] == installer, answer
    # Nothing in it is for doctor or validate, and that is no pass of theirs.
    assert [(step["what"], step["state"]) for step in answer["proof"]] == \
        [("lock", "passed"), ("doctor", "nothing_to_check"), ("validate", "nothing_to_check")], answer
    create.project.drift("--python", "new/bin/python").ends(0)
    run("new/bin/python", "-c", "import alpha, beta, tool")
    for program in ("hello", "greet"):
        assert text_of(f"new/bin/{program}").startswith(f"#!{os.path.realpath('new')}/bin/python"), text_of(f"new/bin/{program}")
    assert run("new/bin/hello") == "hello\n"
    create.project.env("check", "--record", "new").ends(0, "compared with the record new/.scankit/record.json")
    assert not made_at("new"), made_at("new")
    assert sha256(site_of(os.path.abspath("new/bin/python")) / "beta/_c.abi3.so") == sha256(create.project.site / "beta/_c.abi3.so")
    # RECORD is right about the programs that were rewritten.
    assert run_program(create.installers / "uv", "pip", "check", "--python", "new/bin/python").status == 0
    record = text_of(next(site_of(os.path.abspath("new/bin/python")).glob("tool-*.dist-info")) / "RECORD")
    size = int(re.search(r"(?m)^\.\./\.\./\.\./bin/hello,sha256=[^,]+,(\d+)$", record)[1])
    assert size == Path("new/bin/hello").stat().st_size
    assert left_behind() == ["new"]
    create("new", uv=installer == "uv").ends(2, "new exists and is not an empty directory, and nothing was changed")


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "csh", "tcsh"])
def test_next_line(create, shell):
    """What is printed last activates the environment in that shell, as printed, also where the path has a space."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    os.mkdir("a b")
    scankit = create.project.scankit
    result = scankit("env", "create", "a b/new", *create.python(()), variables={**create.variables(), "SHELL": f"/bin/{shell}"}, timeout=300)
    [line] = [line for line in result.ends(0).out.splitlines() if line.startswith("next: ")]
    asked = f"{line.removeprefix('next: ')}; python -c 'import sys; print(sys.prefix)'"
    if "csh" in shell:
        asked = f"set prompt = '% '; {asked}"  # a shell for commands has none, which a venv's script reads
    assert run(shell, *(["-f"] if "csh" in shell else []), "-c", asked) == os.path.realpath("a b/new") + "\n"


def test_same_everywhere(create):
    """pip and uv, two directories: the same content."""
    create("new-a").ends(0, "next: source new-a/bin/activate")
    create("new-b", uv=False).ends(0)
    one, other = record_of("new-a"), record_of("new-b")
    assert set(one["content"]) == {"alpha", "beta", "tool"} and one["content"] == other["content"]
    assert one["signature"] == other["signature"] and one["lock_sha256"] == other["lock_sha256"] == sha256("scankit.lock")
    assert [file["sha256"] for file in one["libraries"]] == [file["sha256"] for file in other["libraries"]]


def test_offline(create, work):
    create.project.env("fetch", "--out", "scankit-wheels").ends(0)
    create.project.index.stop()
    create("new", "--offline", "scankit-wheels").ends(0)
    create("new-pip", "--offline", "scankit-wheels", uv=False).ends(0)
    assert record_of("new")["signature"] == record_of("new-pip")["signature"]
    shutil.rmtree("new"), shutil.rmtree("new-pip")
    alpha = next(Path("scankit-wheels").glob("alpha-*"))
    alpha.write_bytes(alpha.read_bytes() + b"x")
    create("new", "--offline", "scankit-wheels").ends(2, f"alpha==1.0: {work / 'project' / alpha} has sha256 ")
    alpha.unlink()
    create("new", "--offline", "scankit-wheels").ends(2, "1 package cannot be installed, and nothing was changed: alpha==1.0: ")
    create("new", "--offline", "nowhere").ends(2, "--offline nowhere is not a directory")
    shutil.rmtree("scankit-wheels")
    create("new").ends(2, "beta==2.0, which was built locally")
    assert not left_behind()


@pytest.mark.ctest(labels="ci;e2e")
def test_refused(create):
    """What can be known before anything is made."""
    def refused(*words, why, folder="new"):
        result = create(folder, *words).ends(2, why)
        assert not left_behind(), left_behind()
        return result
    refused(why="no/where does not exist", folder="no/where/new")
    Path("file").touch()
    refused(why="file exists and is not an empty directory", folder="file")
    for pointer, value, why in (
            ("/machine/architecture", "aarch64", "the lock is for aarch64, and this machine is x86_64"),
            ("/distributions/0/artifact/file", "alpha-1.0-cp310-cp310-manylinux_2_99_x86_64.whl", "alpha-1.0-cp310"),
            ("/distributions/0/artifact", None, "alpha==1.0: ")):
        forge(pointer, value)
        refused("--lock", "forged.lock", why=why)
    forge("/python/version", "3.7.1")
    create("new", "--lock", "forged.lock", "--python", PYTHON).ends(2, "Python 3.7 is needed")
    # Without --python it is looked for, and how it is got is said.
    forge("/python/version", "3.77.1")
    result = create.project.env("create", "new", "--lock", "forged.lock", variables=create.variables(uv=False))
    result.ends(2, "Python 3.77 is needed, and only 3.").ends(2, "uv python install 3.77")
    Path("scankit.lock").write_text(text_of("good.lock")[:500])
    refused(why="scankit.lock")
    Path("scankit.lock").write_text(text_of("good.lock").replace('"version": "1.0"', '"version": "1.2"'))
    refused(why="scankit.lock was edited after scankit wrote it")
    Path("scankit.lock").unlink()
    refused(why="neither scankit.lock nor scankit.yaml was found")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_mirror_lacks(create, installer):
    """All that is missing is named at once, and one without an index."""
    uv = installer == "uv"
    index = create.project.index
    index.alpha.unlink()
    (index.served / "tool-1.0-py3-none-any.whl").unlink()
    index.stop()
    index.serve()
    result = create("new", uv=uv).ends(5, "2 of 3 packages cannot be installed: alpha==1.0: ")
    result.ends(5, "tool==1.0: ")
    assert not left_behind()
    index.stop()
    create("new", uv=uv).ends(5)
    assert not left_behind()


@pytest.mark.ctest(labels="ci;e2e")
def test_fails_its_proof(create):
    """A wheel of the right hash whose compiled file is not the one of the lock."""
    good = json.loads(text_of("good.lock"))
    [at] = [number for number, one in enumerate(good["libraries"]) if one["path"] == "beta/_c.abi3.so"]
    forge(f"/libraries/{at}/sha256", hashlib.sha256(b"another").hexdigest())
    create("new", "--lock", "forged.lock").ends(6, "the environment does not pass lock: ")
    assert not left_behind()


def test_full_disk(create, work):
    need_root("mounting a small file system")
    (work / "small").mkdir()
    padding = {"big.bin": os.urandom(12 << 20)}
    wheel(create.project.index.served, "big", "1.0", "py3-none-any", padding)
    create.project.index.stop()
    create.project.index.serve()
    create.project.install("big==1.0")
    create.project.lock().ends(0)
    script = 'mount -t tmpfs -o size=10m none "$0" && "$@"; code=$?; ls -A "$0"; exit $code'
    for uv in (True, False):
        result = create(work / "small/new", uv=uv, before=["unshare", "-m", "bash", "-c", script, work / "small"])
        if "unshare" in result.err and not result.out:
            pytest.skip("nothing can be mounted here")
        result.ends(5, "is full: ")
        assert not result.out, f"left on the full disk: {result!r}"


def test_no_permission(create):
    need_root("becoming another user")
    Path("theirs").mkdir(mode=0o755)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    result = create("theirs/new", before=as_nobody)
    assert result.status in (2, 5) and not list(Path("theirs").iterdir()), result


@pytest.mark.ctest(labels="ci;e2e")
def test_killed(create):
    """At random moments, with all that was started: DIR is not there or is whole, and what is left is removed by the next."""
    begin = time.monotonic()
    create("new").ends(0)
    whole, once = record_of("new")["signature"], time.monotonic() - begin
    shutil.rmtree("new")
    seed = int(os.environ.get("SCANKIT_SEED", time.time_ns() % 100000))
    print(f"SCANKIT_SEED={seed}")
    chance = random.Random(seed)
    kills = ready = 0
    for _ in range(12):
        process = create.project.scankit.start("env", "create", "new", "--python", PYTHON, variables=create.variables())
        try:
            process.wait(timeout=chance.uniform(0, once * 1.1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        if os.path.exists("new"):
            ready += 1
            assert record_of("new")["signature"] == whole, "it is there, and is not whole"
            run("new/bin/python", "-c", "import alpha, beta, tool")
            create.project.drift("--python", "new/bin/python").ends(0)
            shutil.rmtree("new")
    print(f"killed {kills} times, {ready} times it was ready")
    assert kills, "nothing was killed"
    time.sleep(1)  # what was killed has ended
    litter = [path for path in left_behind() if not path.endswith(".lock")]
    result = create("new").ends(0)
    assert all(f"removed {os.path.realpath('.')}/{path}, which a killed scankit left" in result.err for path in litter), (litter, result)
    assert left_behind() == ["new"]


def test_interrupted(create):
    """By Ctrl-C and SIGTERM, nothing is left."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = create.project.scankit.start("env", "create", "new", "--python", PYTHON, variables=create.variables())
        until = time.monotonic() + 60
        while not glob.glob("scankit-create.*") and time.monotonic() < until:  # the environment is being made
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(timeout=60) in (128 + number, -number)
        assert not left_behind(), left_behind()


def test_from_spec_by_the_pip_of_ensurepip(create):
    """Debian's python3-venv has a pip, and nothing else here has: the lock has the files all the same, and makes another one."""
    need_root("mounting an empty directory over the pip of this Python")
    shutil.copy(create.project.index.beta, create.project.index.served)
    create.project.index.stop()
    create.project.index.serve()
    Path("scankit.yaml").write_text('schema: 1\npython: {version: "3.*"}\nextensions:\n  beta._c:\n    distribution: beta\n    version: "2.*"\n')
    Path("scankit.lock").unlink(missing_ok=True)
    without_pip = ["unshare", "-m", "bash", "-euc", 'mount -t tmpfs none /usr/lib/python3/dist-packages; exec "$@"', "-"]
    words = ("--python", "/usr/bin/python3")
    create("new", "--spec", "scankit.yaml", *words, uv=False, before=without_pip).ends(0, "lock: ./scankit.lock")
    assert not os.path.exists("new/bin/pip")
    create("new-two", "--lock", "scankit.lock", *words, uv=False, before=without_pip).ends(0)
    assert record_of("new")["content"] == record_of("new-two")["content"]


def test_from_spec(create):
    """The resolver chooses within the ranges, and the lock is written next to the spec."""
    index = create.project.index
    shutil.copy(index.beta, index.served)
    index.stop()
    index.serve()
    Path("specs").mkdir()
    spec = 'schema: 1\npython: {version: "3.*"}\nextensions:\n  beta._c:\n    distribution: beta\n    version: %s\n'
    Path("specs/scankit.yaml").write_text(spec % '"2.*"')
    create("new", "--spec", "specs/scankit.yaml").ends(0, "lock: specs/scankit.lock")
    run("new/bin/python", "-c", "import beta")
    create("new-two", "--lock", "specs/scankit.lock").ends(0)
    create("new-three", "--spec", "specs/scankit.yaml").ends(2, "specs/scankit.lock exists, and a new lock would replace it")
    Path("specs/scankit.lock").unlink()
    Path("specs/scankit.yaml").write_text(spec % '"3.*"')
    create("new-four", "--spec", "specs/scankit.yaml").ends(5, "beta")
    Path("specs/scankit.yaml").write_text(spec % '"2.*"' + "    torch_abi: full\n")
    create("new-four", "--spec", "specs/scankit.yaml").ends(6, "the resolved packages do not satisfy specs/scankit.yaml")
    Path("specs/scankit.yaml").write_text('schema: 1\npython: {version: "3.77.*"}\n')
    result = create.project.env("create", "new-four", "--spec", "specs/scankit.yaml", variables=create.variables(uv=False))
    result.ends(2, "Python 3.77.* is needed, and only 3.")
    assert not os.path.exists("new-four") and not os.path.exists("specs/scankit.lock")


@pytest.mark.ctest(labels="ci;e2e")
def test_not_diverted(create, monkeypatch):
    """Variables and settings that send packages somewhere else."""
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "UV_TARGET"):
        monkeypatch.setenv(name, os.path.abspath("elsewhere"))
    Path("decoy/decoy-1.0.dist-info").mkdir(parents=True)
    Path("decoy/decoy-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: decoy\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", os.path.abspath("decoy"))
    for name, uv in (("new-uv", True), ("new-pip", False)):
        create(name, uv=uv).ends(0)
        assert set(record_of(name)["content"]) == {"alpha", "beta", "tool"}
    assert not os.path.exists("elsewhere")
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "UV_TARGET", "PYTHONPATH"):
        monkeypatch.delenv(name)
    Path("pyproject.toml").write_text('[tool.uv.pip]\ntarget = "elsewhere"\n')
    create("new-three").ends(2, "[tool.uv.pip] target of ")
    assert left_behind() == ["new-pip", "new-uv"]


def test_spec_without_a_package(create):
    """Refused before anything is installed."""
    Path("scankit.lock").unlink()
    Path("scankit.yaml").write_text("schema: 1\nextensions:\n  selective_scan_cuda: {}\n")
    result = create("new it's", "--spec", "scankit.yaml").ends(2, "names no package that contains selective_scan_cuda")
    assert "write from: scankit" in result.err, result
    Path("scankit.yaml").write_text("schema: 1\nextensions:\n  other_cuda: {from: scankit}\n")
    create("new", "--spec", "scankit.yaml").ends(2, "scankit has no module other_cuda")
    assert not left_behind()


def test_spec_from_wheel_and_source(create):
    """`from` decides what the resolver may take: here only wheels are served."""
    Path("scankit.lock").unlink()
    Path("scankit.yaml").write_text("schema: 1\nextensions:\n  alpha: {from: source, distribution: alpha}\n")
    create("new", "--spec", "scankit.yaml").ends(5)
    assert not left_behind() and not Path("scankit.lock").exists()


def test_lock_appears_meanwhile(create):
    """A lock that somebody writes while the environment of a spec is made is theirs, and nothing is left of ours."""
    index = create.project.index
    shutil.copy(index.beta, index.served)
    index.stop()
    index.serve()
    Path("scankit.lock").unlink()
    Path("scankit.yaml").write_text('schema: 1\nextensions:\n  beta._c: {distribution: beta, version: "2.*"}\n')
    # uv also runs to answer for a version; only a spec with packages makes it install.
    Path("slow").mkdir()
    Path("slow/uv").write_text('#!/bin/sh\ncase "$*" in *install*) cp good.lock scankit.lock ;; esac\n'
                               f'exec {create.installers / "uv"} "$@"\n')
    Path("slow/uv").chmod(0o755)
    variables = {**create.variables(uv=True), "PATH": f"{os.path.abspath('slow')}:/usr/bin:/bin"}
    result = create.project.env("create", "new", "--python", PYTHON, "--spec", "scankit.yaml", variables=variables, timeout=300)
    result.ends(6, "scankit.lock was created by somebody else in the meantime")
    assert text_of("scankit.lock") == text_of("good.lock") and not left_behind(), left_behind()


def test_quote_in_name(create):
    create("new it's").ends(0)
    assert run("new it's/bin/hello") == "hello\n" and not made_at("new it's")
