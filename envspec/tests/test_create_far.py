# SPDX-License-Identifier: Apache-2.0
"""One lock on two machines, and the environment that all this is for: a real torch with a module of ours. Minutes, and 5 GB."""
import json
import os
import shutil
from pathlib import Path

import pytest

from creating import PYTHON, Create, record_of
from fixtures import need_root, run, shell, shell_or_skip
from program import run_program
from project import sha256, text_of
from test_lock_torch import COMPUTES

pytestmark = pytest.mark.ctest(group="envspec.create", labels="matrix;large;e2e", timeout=1800)

# Arguments: the root, then what is lent to it (the path is the same inside), then "--" and the command. In mount and process
# namespaces of its own: nothing stays mounted, and nobody runs on.
IN_ROOT = """
root=$1; shift
while [ "$1" != -- ]; do mkdir -p "$root$1" && mount --bind "$1" "$root$1"; shift; done
shift; mount -t proc proc "$root/proc"; mount -t tmpfs none "$root/tmp"
PATH=$PATH:/usr/sbin:/sbin exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin "$@"
"""


@pytest.fixture
def wheels():
    """Of torch, and numpy among them. Before `project`: the download needs the caller's index."""
    return Path(shell_or_skip("fx_wheels"))


@pytest.fixture
def other_root(work):
    """A copy of a minimal root of another release of the distribution. Before `project`, which has a cache of its own."""
    need_root("making a root file system")
    base = shell_or_skip("fx_bare_root", "trixie")
    if run_program("unshare", "-m", "-p", "-f", "true").status:
        pytest.skip("no mount namespace can be made here")
    run("cp", "-a", "--reflink=auto", base, work / "root")
    yield work / "root"
    shutil.rmtree(work / "root", ignore_errors=True)


def test_two_machines(wheels, other_root, project, build, work):
    """The same content, whoever makes it and wherever."""
    [numpy] = wheels.glob("numpy-*.whl")
    (project.index.served / numpy.name).symlink_to(numpy)
    project.index.stop()
    project.index.serve()
    project.install("numpy")
    project.lock().ends(0)
    project.export("requirements", "requirements.txt").ends(0)
    project.env("fetch", "--out", "scankit-wheels").ends(0)
    here = Create(project)
    here("here", "--offline", "scankit-wheels", uv=False).ends(0)
    uv = Path(shutil.which("uv", path=str(project.installers))).resolve()
    lent = [str(Path(PYTHON).parents[1]), str(build), str(uv.parent), str(work / "project")]
    command = [build / "scankit", "env", "create", work / "project/there", "--lock", work / "project/scankit.lock", "--python", PYTHON,
               "--offline", work / "project/scankit-wheels", "--json"]
    there = run_program("unshare", "-m", "-p", "-f", "--mount-proc", "bash", "-euc", IN_ROOT, "-", other_root, *lent, "--", f"UV={uv}", *command,
                        timeout=300)
    there.ends(0)
    one, other = record_of("here"), record_of("there")
    assert one["installer"] == "pip" and other["installer"] == "uv", (one["installer"], other["installer"])
    assert set(one["content"]) >= {"alpha", "beta", "numpy"} and one["content"] == other["content"]
    assert one["signature"] == other["signature"] and len(one["libraries"]) > 10
    for file in one["libraries"]:
        for name, record in (("here", one), ("there", other)):
            assert sha256(Path(name, record["site"], file["path"])) == file["sha256"], (name, file)
    # What differs is what the answer names, and what belongs to no package's content.
    named = set(there.json["names_its_directory"])
    for path in sorted(Path("here").rglob("*")):
        inner = path.relative_to("here")
        twin = Path("there", inner)
        if path.is_file() and not path.is_symlink() and twin.is_file() and sha256(path) != sha256(twin):
            own = inner.name in ("RECORD", "INSTALLER", "REQUESTED", "pyvenv.cfg", "record.json") or inner.parts[0] == "bin"
            assert own or str(inner) in named, f"{inner} differs"


def test_torch(wheels, bare_project, scankit):
    """Created from the lock, its module proven by `validate --quick`, and told apart by its record in milliseconds."""
    project = bare_project
    requirements = shell("fx_torch_requirements").split()
    for file in wheels.glob("*.whl"):
        (project.index.served / file.name).symlink_to(file)
    project.index.stop()
    project.index.serve()
    project.make_environment("env")
    project.uv("pip", "install", "--python", project.python, "--no-deps", *requirements, timeout=900).ends(0)
    scankit("fix", "--python", project.python, "--module", "selective_scan_cuda", "--arch", "sm_90", "--yes", timeout=900).ends(0)
    project.lock(timeout=900).ends(0)
    project.export("requirements", "requirements.txt").ends(0)
    create = Create(project)
    result = create("new", "--json", timeout=900)
    assert result.status in (0, 4), result
    states = {step["what"]: step["state"] for step in result.json["proof"]}
    assert states["lock"] == "passed" and states["validate selective_scan_cuda"] in ("passed", "not_verified"), result
    assert "failed" not in states.values() and result.json["torch"].startswith("2."), result
    run("new/bin/python", "-c", COMPUTES)
    assert sha256(project.site / "selective_scan_cuda.abi3.so") in [file["sha256"] for file in record_of("new")["libraries"]]
    project.env("check", "--record", "new").ends(0)
    [library] = Path("new").rglob("libc10.so")
    with open(library, "ab") as file:
        file.write(b"x")
    changed = project.env("check", "--record", "new", "--json").ends(7)
    assert [finding["subject"] for finding in changed.json["findings"]] == ["torch/lib/libc10.so"], changed
    assert json.loads(text_of("new/.scankit/record.json"))["torch"] == result.json["torch"]
    assert not [path for path in os.listdir() if path.startswith("scankit-create")]
