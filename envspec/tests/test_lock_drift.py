# SPDX-License-Identifier: Apache-2.0
"""Each drift from a lock by the real thing: another Python, another torch, another machine, packages and files; of a live
environment, of an unpacked image and of a stored snapshot."""
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from fixtures import host_python, run, shell, site_of
from project import library, sha256, text_of

pytestmark = pytest.mark.ctest(group="envspec.lock_drift", labels="matrix;e2e", timeout=300)


def plant_torch(site, release, git):
    """A torch as far as its files tell: what the doctor reads of one is its version file and its libraries."""
    info = site / f"torch-{release}.dist-info"
    for folder in (site / "torch", info):
        folder.mkdir(exist_ok=True)
    (site / "torch/__init__.py").touch()
    (site / "torch/version.py").write_text(f"__version__ = '{release}'\ndebug = False\ncuda = '13.0'\ngit_version = '{git}'\nhip = None\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {release}\n")
    (info / "RECORD").write_text("torch/version.py,,\n" + "".join(f"{info.name}/{name},,\n" for name in ("METADATA", "RECORD")))


def remove_torch(site):
    for path in site.glob("torch*"):
        shutil.rmtree(path)


@pytest.fixture
def project(bare_project, work):
    """With a torch, locked; below the home of one ada, for what may not be told of her."""
    (work / "home/ada").mkdir()
    bare_project.make_environment("home/ada/env")
    bare_project.install_alpha_and_beta()
    plant_torch(bare_project.site, "2.11.0", "aaaa")
    bare_project.lock("--offline").ends(0)
    bare_project.drift().ends(0)
    return bare_project


def test_torch(project):
    plant_torch(project.site, "2.11.0", "bbbb")
    project.drifts(7, "drift_lock_torch").ends(7, "locks the commit of torch aaaa, but found bbbb")
    remove_torch(project.site)
    project.drifts(7, "drift_lock_package drift_lock_torch")
    plant_torch(project.site, "2.12.0", "aaaa")
    project.drifts(7, "drift_lock_package drift_lock_torch")


def test_packages(project):
    project.install("--no-index", "--no-deps", next(project.index.own.glob("gamma-*.whl")))
    project.drifts(0, "drift_lock_package_extra")
    project.drift("--python", project.python, "--fail-on", "warning").ends(7)
    project.uninstall("gamma", "alpha")
    project.drifts(7, "drift_lock_package")
    project.install("alpha==1.0")
    project.drifts(0, "")


def test_diff(project):
    environment, module = project.python.parents[1], project.site / "beta/_c.abi3.so"
    # This torch has no library to read.
    project.env("diff", "scankit.lock", environment).ends(4, "0 differences, 1 unknown")
    library(module, 43)
    result = project.env("diff", "--json", "scankit.lock", environment).ends(7, '"field": "files.beta/_c.abi3.so"')
    result.ends(7, sha256(module))
    project.env("diff", project.python, "scankit.lock").ends(7)


def test_redacted(project, work):
    home = os.environ["HOME"]
    library(project.site / "beta/_c.abi3.so", 43)
    result = project.drifts(7, "drift_lock_file", "--python", project.python, "--redact")
    assert home not in result.text, result
    project.drift("--python", project.python, "--redact", "--report", "html=page.html").ends(7)
    assert home not in text_of("page.html")
    result = project.env("diff", "--redact", "scankit.lock", project.python.parents[1]).ends(7)
    assert home not in result.out, result


def test_files(project):
    module = project.site / "beta/_c.abi3.so"
    library(module, 43)
    project.drifts(7, "drift_lock_file").ends(7, str(module))
    module.unlink()
    project.drifts(7, "drift_lock_file")
    for path in (module, module.with_name("_d.abi3.so")):
        shutil.copy(project.work / "answer.so", path)
    project.drifts(0, "drift_lock_file_extra")
    path.unlink()
    project.drifts(0, "")


def test_another_python(project, work):
    """The same files below an interpreter of another minor release."""
    other = shell("fx_other_python", host_python())
    if not other:
        pytest.skip("no second Python")
    python = work / "other/bin/python"
    run(os.path.realpath(other), "-m", "venv", "--without-pip", work / "other")
    project.environments.append(work / "other")
    shutil.copytree(project.site, site_of(python), symlinks=True, dirs_exist_ok=True)
    found = run(python, "-c", "import platform; print(platform.python_version())").strip()
    locked = run(project.python, "-c", "import platform; print(platform.python_version())").strip()
    project.drifts(7, "drift_lock_python", "--python", python).ends(7, f"locks python {locked}, but found {found}")


@pytest.fixture
def image(project, work):
    """The environment and the Python below it as an unpacked image holds them."""
    image = work / "image"
    interpreter = Path(os.path.realpath(project.python))
    os_module = Path(os.path.realpath(run(project.python, "-c", "import os; print(os.__file__)").strip()))
    loader = re.search(r"interpreter: (.*)\]", run("readelf", "-l", "/bin/true"))[1]
    libc = re.search(r"libc\.so\.6 => (\S*) ", run("ldd", "/bin/true"))[1]
    for path in ("/etc/os-release", loader, libc, os_module, interpreter):
        copy = Path(f"{image}{path}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(project.python.parents[1], f"{image}{project.python.parents[1]}", symlinks=True)
    yield image
    shutil.rmtree(image)


def test_image(project, image):
    site = Path(f"{image}{project.site}")
    of_image = ["--root", image, "--python", project.python]
    project.drifts(0, "", *of_image)
    library(site / "beta/_c.abi3.so", 44)
    project.drifts(7, "drift_lock_file", *of_image)
    project.drifts(0, "")
    remove_torch(site)
    project.drifts(7, "drift_lock_file drift_lock_package drift_lock_torch", *of_image)
    project.drift("--root", image, "--python", "/none/bin/python").ends(2)


def test_snapshot(project):
    """A stored snapshot: packages and torch are told, files by their build-ids alone."""
    project.scankit("snapshot", "--python", project.python, "--out", "here.json").ends(0)
    project.drifts(0, "", "--from", "here.json").ends(0, "a snapshot contains none;")

    def edit(pointer, value):
        """there.json: the snapshot of a machine that is not at hand."""
        snapshot = at = json.loads(text_of("here.json"))
        *way, last = pointer.strip("/").split("/")
        for key in way:
            at = at.setdefault(key, {})
        at[last] = value
        Path("there.json").write_text(json.dumps(snapshot))

    for pointer, value, status, causes in (
            ("/os/value/machine", "aarch64", 7, "drift_lock_machine"),
            ("/libc/value/version", "2.17", 0, "drift_lock_machine"),
            ("/libc/value/version", "2.99", 0, ""),
            ("/torch/value/version", "2.12.0", 7, "drift_lock_torch")):
        edit(pointer, value)
        project.drifts(status, causes, "--from", "there.json")
    edit("/torch/state", "failed")
    project.drift("--from", "there.json").ends(4)
    edit("/schema", 99)
    project.drift("--from", "there.json").ends(2)
    project.env("lock", "--from", "here.json", "--out", "none.lock").ends(2)
    assert not os.path.exists("none.lock")
