# SPDX-License-Identifier: Apache-2.0
"""Environments made by a real conda, from a lock and from a spec: what contains their path, what a kill leaves, and what is
refused."""
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from creating import left_behind, made_at, record_of
from fixtures import TORCH, run
from project import sha256, text_of
from test_bad_input import forge
from test_create_far import serve_what_torch_needs, wheels  # noqa: F401
from test_lock_torch import COMPUTES

pytestmark = pytest.mark.ctest(group="envspec.conda", labels="matrix;e2e", timeout=900)

WHERE = ("import ctypes, sys; where = ctypes.CDLL(sys.prefix + '/lib/libwhere.so').where; where.restype = ctypes.c_char_p; "
         "print(where().decode())")


def records(folder):
    return {one["name"]: one for one in map(json.loads, map(text_of, Path(folder, "conda-meta").glob("*.json")))}


def is_in_its_place(folder):
    """Every file that conda puts the prefix into has the right one, and conda's own records are right about all of its files."""
    place = os.path.realpath(folder)
    assert not made_at(folder), made_at(folder)
    assert run(f"{folder}/bin/python", "-c", WHERE) == f"{place}/a:{place}/b\n"
    assert text_of(f"{folder}/etc/where.txt") == f"prefix = {place}\n"
    assert text_of(f"{folder}/bin/pydoc").startswith(f"#!{place}/bin/python")
    assert run(f"{folder}/bin/zeta").startswith("zeta 1.")
    assert run(f"{folder}/bin/python", "-c", "import sys; print(sys.prefix)") == f"{place}\n"
    assert list(Path(folder).rglob("zeta.cpython-*.pyc")), "conda compiles a noarch package"
    for record in records(folder).values():
        assert all(Path(folder, path).is_file() for path in record["files"]), record["name"]
        for entry in record["paths_data"]["paths"]:
            path = entry["_path"]
            if path.startswith("site-packages/"):  # of a noarch package, as conda records it
                [path] = Path(folder).glob(f"lib/python3*/{path}")
            else:
                path = Path(folder, path)
            if entry.get("sha256_in_prefix") and entry["path_type"] == "hardlink":
                assert sha256(path) == entry["sha256_in_prefix"], entry


@pytest.mark.ctest(labels="ci;e2e")
def test_from_lock(conda):
    """conda's packages by conda, alpha and beta by pip, in a directory that conda itself would fill with the same bytes."""
    project = conda.project
    result = conda.create("new", "--json").ends(0)
    answer = result.json
    assert answer["installer"] == "conda" and answer["base_python"] == str(conda.program), answer
    assert answer["base_python_found_by"] == "CONDA_EXE", answer
    assert [(step["what"], step["state"]) for step in answer["proof"]] == \
        [("lock", "passed"), ("doctor", "nothing_to_check"), ("validate", "nothing_to_check")], answer
    is_in_its_place("new")
    run("new/bin/python", "-c", "import alpha, beta, zeta, native")
    project.drift("--python", "new/bin/python").ends(0)
    project.env("check", "--record", "new").ends(0)
    assert record_of("new")["installer"] == "conda"
    assert {name: (one["version"], one["sha256"]) for name, one in records("new").items()} == \
        {name: (one["version"], one["sha256"]) for name, one in records(conda.prefix).items()}
    history = text_of("new/conda-meta/history")
    assert f"--prefix {os.path.realpath('new')} " in history and "+" in history, history
    # conda goes on from there.
    conda.run("install", "--prefix", os.path.realpath("new"), "zeta=1.1").ends(0)
    assert run("new/bin/zeta") == "zeta 1.1\n"
    # The same environment by conda alone, at the same place: no compiled file differs.
    libraries = {path.name: sha256(path) for path in Path("new").rglob("*.so*") if path.is_file()}
    shutil.rmtree("new")
    conda.run("create", "--prefix", os.path.realpath("new"), "python", "native").ends(0)
    for path in Path("new").rglob("*.so*"):
        assert libraries[path.name] == sha256(path), path
    shutil.rmtree("new")
    assert not left_behind(), left_behind()


def test_from_spec(conda):
    """Python from the user's channels, within the range; settings of the user's that add packages to every new environment
    do not count."""
    conda.settings(f"channels: ['{conda.url}']", "create_default_packages: [zeta]")
    index = conda.project.index
    shutil.copy(index.beta, index.served)
    index.stop()
    index.serve()
    series = conda.channel.minor
    Path("specs").mkdir()
    Path("specs/scankit.yaml").write_text(f'schema: 1\npython: {{version: "=={series}.*"}}\nextensions:\n  beta._c: {{distribution: beta, from: wheel}}\n')
    result = conda.create("new", "--spec", "specs/scankit.yaml", "--installer", "conda")
    result.ends(0, "lock: specs/scankit.lock").ends(0, f"next: {conda.program.name} activate {os.path.realpath('new')}\n")
    assert set(records("new")) == {"python", "pip"}, records("new").keys()
    run("new/bin/python", "-c", "import beta")
    locked = json.loads(text_of("specs/scankit.lock"))
    assert {one["name"] for one in locked["conda_packages"]} == {"python", "pip"}, locked["conda_packages"]
    conda.create("new-two", "--lock", "specs/scankit.lock").ends(0)
    assert record_of("new")["content"] == record_of("new-two")["content"]
    Path("specs/scankit.lock").unlink()
    Path("specs/scankit.yaml").write_text('schema: 1\npython: {version: "==3.77.*"}\n')
    conda.create("new-three", "--spec", "specs/scankit.yaml", "--installer", "conda").ends(5)
    assert left_behind() == ["new", "new-two"]


def test_lock_of_a_venv(conda):
    """A lock that conda has no part of: Python and pip are from the channels, and what is locked from the index."""
    project = conda.project
    project.make_environment("env")
    project.install("alpha==1.0")
    project.lock().ends(0)
    conda.create("new", "--installer", "conda").ends(0)
    assert set(records("new")) == {"python", "pip"}
    is_python = run("new/bin/python", "-c", "import alpha, sys; print('%d.%d' % sys.version_info[:2])")
    assert is_python == f"{conda.channel.minor}\n"
    conda.create("new-two", "--installer", "conda", "--offline", ".").ends(2, "needs a lock of a conda environment")
    conda.create("new-two", "--installer", "pip", "--python", conda.project.installers / "python").ends(0)
    assert record_of("new-two")["content"]["alpha"] == record_of("new")["content"]["alpha"]


def test_offline(conda):
    """conda's packages and the wheels from one directory, with neither channel nor index."""
    project = conda.project
    project.env("fetch", "--out", "files").ends(4, "not downloaded: beta==2.0: ").has_line(r"^5 downloaded, 0 already there, 1 without")
    assert {path.name for path in Path("files").iterdir()} >= {"zeta-1.0-0.tar.bz2", "native-1.0-0.tar.bz2", "alpha-1.0-py3-none-any.whl"}
    project.index.stop()
    conda.channel_server.shutdown()
    shutil.rmtree(conda.work / "pkgs")
    conda.create("new", "--offline", "files").ends(0)
    run("new/bin/python", "-c", "import alpha, beta, zeta, native")
    project.drift("--python", "new/bin/python").ends(0)
    zeta = Path("files/zeta-1.0-0.tar.bz2")
    zeta.write_bytes(zeta.read_bytes() + b"x")
    conda.create("new-two", "--offline", "files").ends(2, "zeta=1.0=0: ").ends(2, "has sha256 ")
    zeta.unlink()
    conda.create("new-two", "--offline", "files").ends(2, "1 package of conda cannot be installed, and nothing was made: zeta=1.0=0: ")
    assert left_behind() == ["new"]


def test_channel_moved(conda):
    """Where the URLs of the lock lead nowhere, the channels are asked by name; what they have instead is refused by its hash."""
    lock = text_of("scankit.lock")
    [url] = {one["url"] for one in json.loads(lock)["conda_packages"] if one["name"] == "zeta"}
    [at] = [number for number, one in enumerate(json.loads(lock)["conda_packages"]) if one["name"] == "zeta"]
    shutil.copy("scankit.lock", "good.lock")
    forge(f"/conda_packages/{at}/url", url.replace("zeta", "elsewhere/zeta"))
    shutil.rmtree(conda.work / "pkgs")
    conda.create("new", "--lock", "forged.lock").ends(0, "looking in the channels")
    forge(f"/conda_packages/{at}/sha256", "0" * 64)
    conda.create("new-two", "--lock", "forged.lock").ends(5, "zeta: its file has another sha256 than the lock says")
    assert left_behind() == ["new"]


@pytest.mark.ctest(labels="ci;e2e")
def test_refused(conda, monkeypatch):
    """Before anything is made, and where conda's part is not for an installer."""
    def refused(status, why, *words, **how):
        conda.create("new", *words, **how).ends(status, why)
        assert not left_behind(), left_behind()
    refused(2, "only conda can make it again: scankit env create DIR --installer conda", "--installer", "pip", "--python",
            conda.project.installers / "python")
    refused(2, "--python cannot be combined with conda", "--python", conda.prefix)
    # sync leaves an environment of conda's alone.
    before = run("find", conda.prefix, "-printf", "%p %T@ %s\n")
    for words in ([], ["--dry-run"]):
        conda.project.env("sync", "--python", conda.prefix, *words).ends(2, "is a conda environment, whose packages only conda may change")
    assert run("find", conda.prefix, "-printf", "%p %T@ %s\n") == before
    # The program that CONDA_EXE names is gone, or is none, or is too old.
    fake = conda.work / "fake/conda"
    fake.parent.mkdir()
    variables = {"CONDA_EXE": str(fake), "PATH": "/usr/bin:/bin"}
    refused(2, "conda, mamba or micromamba was found neither on PATH nor in CONDA_EXE or MAMBA_EXE", variables=variables)
    for text, why in (("echo conda 4.6.14", "conda 4.6.14 is too old: current packages need 4.7.0 or newer"),
                      ("echo no such environment >&2; exit 1", "cannot make the environment: no such environment"),
                      ("echo hello", "it does not say which version it is: ")):
        fake.write_text(f"#!/bin/sh\n{text}\n")
        fake.chmod(0o755)
        refused(2, why, variables=variables)
    # A conda that fails half-way.
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo conda 24.7.1; exit; }\nmkdir -p "$6/conda-meta"; echo half >"$6/half"; exit 1\n')
    refused(5, "", variables=variables)


# How micromamba 2.8 differs from conda: it answers --version in another way, lacks an option, records of a file with the
# prefix only both hashes, and lists every environment whatever CONDA_REGISTER_ENVS says.
MICROMAMBA = """#!{python}
import json, pathlib, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("2.8.1"))
if "--no-default-packages" in words:
    sys.exit("The following argument was not expected: --no-default-packages")
status = subprocess.run(["{conda}", *words]).returncode
prefix = pathlib.Path(words[words.index("--prefix") + 1])
for file in prefix.glob("conda-meta/*.json"):
    record = json.loads(file.read_text())
    for entry in record["paths_data"]["paths"]:
        entry.pop("prefix_placeholder", None)
        entry.pop("file_mode", None)
    file.write_text(json.dumps(record))
with open(pathlib.Path.home() / ".conda/environments.txt", "a") as listed:
    print(prefix, file=listed)
sys.exit(status)
"""


def test_micromamba_alone(conda, monkeypatch):
    """On PATH, without conda and without its shell function: the real one where SCANKIT_TEST_CONDA names it, else conda with its
    ways."""
    folder = conda.work / "micromamba-bin"
    folder.mkdir()
    program = folder / "micromamba"
    if conda.program.name == "micromamba":
        program.symlink_to(conda.program)
    else:
        program.write_text(MICROMAMBA.format(python=conda.project.installers / "python", conda=conda.program))
        program.chmod(0o755)
    monkeypatch.delenv("CONDA_EXE")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    listed = Path(os.environ["HOME"], ".conda/environments.txt")
    listed.parent.mkdir(exist_ok=True)
    listed.write_text("/somebody/else\n")
    place = os.path.realpath("new")
    hook = 'eval "$(micromamba shell hook --shell bash)"'
    conda.create("new").ends(0, f"next: {hook} && micromamba activate {place}\n")
    assert listed.read_text() == "/somebody/else\n", "the directory where it was made is listed"
    is_in_its_place("new")
    conda.project.drift("--python", "new/bin/python").ends(0)
    suggested = conda.project.env("suggest", "--offline", "--installer", "conda", "--gpu", "sm_90", "--driver", "580.95.05",
                                  "--glibc", "2.35", "--python", "3.11").ends(0)
    suggested.has_line(r"micromamba create --prefix ./\S+ python=3.11 pip$")
    if conda.program.name == "micromamba":
        assert run("bash", "-c", f"{hook} && micromamba activate {place} && command -v zeta") == f"{place}/bin/zeta\n"


def test_killed(conda):
    """At random moments, also while conda runs: the directory is not there or is whole."""
    project = conda.project
    begin = time.monotonic()
    conda.create("new").ends(0)
    whole, once = record_of("new")["signature"], time.monotonic() - begin
    shutil.rmtree("new")
    seed = int(os.environ.get("SCANKIT_SEED", time.time_ns() % 100000))
    print(f"SCANKIT_SEED={seed}")
    chance = random.Random(seed)
    kills = 0
    for number in [signal.SIGINT, signal.SIGTERM] + [signal.SIGKILL] * 4:
        process = project.scankit.start("env", "create", "new")
        try:
            process.wait(timeout=chance.uniform(0, once))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            kills += 1
        process.wait()
        if os.path.exists("new"):
            assert record_of("new")["signature"] == whole, "it is there, and is not whole"
            is_in_its_place("new")
            shutil.rmtree("new")
        if number != signal.SIGKILL:
            assert not left_behind(), left_behind()
        else:
            time.sleep(0.5)  # conda ends with scankit; the next one removes what they left
    assert kills, "nothing was killed"
    time.sleep(1)  # what was killed has ended
    assert conda.create("new").ends(0) and left_behind() == ["new"], left_behind()


@pytest.mark.ctest(labels="matrix;large;e2e", timeout=1800)
def test_torch(wheels, conda):  # noqa: F811
    """What a suggestion's spec demands: a real torch by pip and scankit's own module, in an environment of conda's, twice."""
    index = conda.project.index
    for file in wheels.glob("*.whl"):
        (index.served / file.name).symlink_to(file)
    serve_what_torch_needs(index.served, wheels)
    index.stop()
    index.serve()
    Path("specs").mkdir()
    Path("specs/scankit.yaml").write_text(
        'schema: 1\ngpus: [sm_90]\ntorch: {version: "%s.*"}\nextensions:\n  selective_scan_cuda: {from: scankit, torch_abi: none, code: [sm_90]}\n'
        % ".".join(TORCH.split(".")[:2]))
    result = conda.create("new", "--spec", "specs/scankit.yaml", "--installer", "conda", "--json", "--cache-dir",
                          os.environ.get("SCANKIT_FIX_CACHE", "cache"), seconds=1500)
    assert result.status in (0, 4), result.err[-1200:]
    states = {step["what"]: step["state"] for step in result.json["proof"]}
    assert states["spec"] == states["lock"] == "passed" and states["validate selective_scan_cuda"] in ("passed", "not_verified"), result
    run("new/bin/python", "-c", COMPUTES)
    assert not made_at("new") and not Path("new/.scankit/journal").exists()
    conda.project.env("export", "requirements", "--lock", "specs/scankit.lock", "--python", "new/bin/python", "--out",
                      "specs/requirements.txt", "--partial").ends(0)
    assert conda.create("again", "--lock", "specs/scankit.lock", seconds=900).status in (0, 4)
    assert record_of("again")["signature"] == record_of("new")["signature"]
