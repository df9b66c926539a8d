# SPDX-License-Identifier: Apache-2.0
"""One lock on two machines, and the environment that all this is for: a real torch with a module of ours. Minutes, and 5 GB."""
import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from creating import PYTHON, Create, record_of
from fixtures import TORCH, need_root, run, shell, shell_or_skip
from program import run_program
from lock_wheels import wheel
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


def serve_what_torch_needs(served, wheels):
    """What the resolver demands for torch and the fixtures leave out. The libraries of CUDA come from the loader's cache here
    (fx_toolkit_serves_torch), so that wheels without content do; of setuptools and mpmath, those of the fixtures are too new."""
    [torch] = wheels.glob("torch-*.whl")
    with zipfile.ZipFile(torch) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        needs = re.findall(r"(?m)^Requires-Dist: ([A-Za-z0-9._-]+)(?:\[[^]]*\])?([^;\n]*)", archive.read(metadata).decode())
    for name, versions in needs:
        version = re.search(r"(==|>=)([0-9.]+)", versions)
        file = name.replace("-", "_")
        # Another test's fixture may have left a wheel of another version there.
        if version and not list(served.glob(f"{file}-{version[2] if version[1] == '==' else '*'}-*.whl")):
            wheel(served, file, version[2], "py3-none-any", {})
    # Of its extras those that the fixtures have.
    extras = ["nvidia-cufile; extra == 'cufile'", "nvidia-cuda-nvrtc; extra == 'nvrtc'"]
    wheel(served, "cuda_toolkit", "13.0.2", "py3-none-any", {}, requires=extras)
    for name, version in (("setuptools", "81.0"), ("mpmath", "1.3.0")):
        [newer] = wheels.glob(name + "-*.whl")
        with zipfile.ZipFile(newer) as archive:
            files = {inner: archive.read(inner) for inner in archive.namelist() if ".dist-info/" not in inner}
        wheel(served, name, version, "py3-none-any", files)


def test_spec_from_scankit(wheels, bare_project, scankit):
    """A spec whose module is scankit's own: installed, proven, locked, packed, and made again from the lock."""
    project = bare_project
    for file in wheels.glob("*.whl"):
        (project.index.served / file.name).symlink_to(file)
    serve_what_torch_needs(project.index.served, wheels)
    project.index.stop()
    project.index.serve()
    Path("scankit.yaml").write_text(
        'schema: 1\ngpus: [sm_90]\ntorch: {version: "%s.*"}\nextensions:\n  selective_scan_cuda: {from: scankit, torch_abi: none, code: [sm_90]}\n'
        % ".".join(TORCH.split(".")[:2]))
    create = Create(project)
    result = create("new", "--spec", "scankit.yaml", "--json", "--cache-dir", os.environ.get("SCANKIT_FIX_CACHE", "cache"), timeout=1500)
    assert result.status in (0, 4), result.err[-1200:]
    states = {step["what"]: step["state"] for step in result.json["proof"]}
    assert states["spec"] == states["lock"] == "passed" and states["validate selective_scan_cuda"] in ("passed", "not_verified"), result
    run("new/bin/python", "-c", COMPUTES)
    assert not Path("new/.scankit/journal").exists() and not Path("new/.scankit/backup").exists()
    project.env("check", "--record", "new").ends(0)
    # 4: the machine has no GPU to compare with the spec's.
    assert project.env("check", "--spec", "scankit.yaml", "--python", "new/bin/python").status in (0, 4)
    [ours] = [one for one in project.locked["distributions"] if one["name"] == "scankit-selective-scan-cuda"]
    assert ours["source"] == "here" and ours["artifact"], ours
    # What is locked can be made again, by the same bytes.
    project.env("export", "requirements", "--python", "new/bin/python", "--out", "requirements.txt").ends(0)
    assert create("again", "--json", timeout=900).status in (0, 4)
    assert record_of("again")["signature"] == record_of("new")["signature"]
    # And what env init writes of it says where the module is from.
    project.env("init", "--python", "new/bin/python", "--out", "derived.yaml").ends(0)
    assert "    from: scankit" in text_of("derived.yaml"), text_of("derived.yaml")


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
