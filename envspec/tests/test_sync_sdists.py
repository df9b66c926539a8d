# SPDX-License-Identifier: Apache-2.0
"""`env sync` with locks whose packages no index has as a wheel: built as `env create` builds them, once, and taken back whole."""
import json
import os
import shutil
from pathlib import Path

import pytest

from creating import Create, pip_wheel, record_of
from fixtures import run, shell_or_skip, site_of
from project import sha256, text_of
from source_packages import build_tools, native, serve

pytestmark = pytest.mark.ctest(group="envspec.sync", labels="matrix;e2e", timeout=600)

REAL = (("docopt", "0.6.2"), ("markupsafe", "3.0.2"))  # one of Python alone, and one with a C module


@pytest.fixture
def tools():
    return build_tools()


@pytest.fixture
def real_archives():
    """With the wheel of what a build without pyproject.toml needs. Before `bare_project`: the download needs the caller's index."""
    packages = Path(shell_or_skip("fx_packages", "wheel==0.45.1"))
    return [next(packages.glob("wheel-0.45.1-*.whl"))] + [Path(shell_or_skip("fx_sdist", name, version)) for name, version in REAL]


@pytest.fixture
def project(tools, bare_project, work):
    """With alpha and `native`, which somebody's pip has built from the archive of the index; locked."""
    bare_project.archive = native(bare_project.index.served, work / "built")
    serve(bare_project.index, *tools.glob("setuptools-75.8.0-*.whl"))
    bare_project.make_environment("env")
    bare_project.install("alpha==1.0")
    run(bare_project.installers / "python", "-m", "pip", "--python", bare_project.python, "install", "-q", "native==1.0")
    bare_project.lock().ends(0)
    (work / "built").unlink()
    return bare_project


def other_environment(project, uv, alpha="alpha==1.1"):
    """"other", with an older state, made by that installer."""
    python = os.path.abspath("other/bin/python")
    if uv:
        project.uv("venv", "--no-project", "--python", project.installers / "python", "other").ends(0)
    else:
        run(project.installers / "python", "-m", "venv", "--without-pip", "other")
        run(project.installers / "python", "-m", "pip", "--python", python, "install", "-q", "--no-index", "--find-links", pip_wheel(), "pip")
    project.uv("pip", "install", "--python", python, alpha).ends(0)
    return python


def files_below(folder):
    """What is in the environment, but for what scankit keeps there and for byte code."""
    return {str(path.relative_to(folder)): sha256(path) for path in Path(folder).rglob("*")
            if path.is_file() and not path.is_symlink() and ".scankit" not in path.parts and "__pycache__" not in path.parts}


@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.ctest(labels="ci;e2e")
def test_builds(project, installer, work):
    """The same bytes as `env create` makes, in one transaction; the next sync leaves the build alone, and `restore` takes it back."""
    uv, create = installer == "uv", Create(project)
    assert create("new", uv=uv).status in (0, 4)
    (work / "built").unlink()
    python = other_environment(project, uv)
    before = files_below("other")
    create.sync("other", "--dry-run", uv=uv).ends(0, "build: native==1.0 from native-1.0.tar.gz").ends(0, "install: alpha==1.0")
    assert not (work / "built").exists() and files_below("other") == before
    result = create.sync("other", "--json", uv=uv)
    assert result.status in (0, 4), result
    [built] = result.json["built"]
    assert built == {"name": "native", "version": "1.0", "archive": "native-1.0.tar.gz", "sha256": sha256(project.archive)}
    assert (result.json["installer"], result.json["installed"]) == (installer, ["alpha==1.0"]), result.json
    assert [step["state"] for step in result.json["proof"] if step["what"] == "build native"] == \
        ["passed" if result.status == 0 else "not_verified"], result.json["proof"]
    assert run(python, "-c", "import alpha, native; print(alpha.version, native.answer())") == "1.0 42\n"
    assert record_of("other")["content"]["native"] == record_of("new")["content"]["native"], "create and sync build differently"
    assert b"scankit-sync" not in next((site_of(python) / "native").glob("_c*.so")).read_bytes()
    project.env("check", "--record", "other").ends(0)

    (work / "built").unlink()
    again = create.sync("other", "--json", uv=uv).ends(result.status)
    assert again.json["state"] == "unchanged" and again.json["built"] == [], again.json
    assert not (work / "built").exists(), "it was built once more"
    create.sync("other", "--dry-run", uv=uv).ends(0, "these were built from their locked archives: native==1.0 from native-1.0.tar.gz")
    assert [step["what"] for step in again.json["proof"]] == [step["what"] for step in result.json["proof"]]
    project.scankit("restore", "--python", python).ends(0, "env sync scankit.lock")
    assert files_below("other") == before

    # Somebody changes what was built: it is not that build any more, and their file comes back with `restore`.
    assert create.sync("other", uv=uv).status == result.status
    (work / "built").unlink()
    so = next((site_of(python) / "native").glob("_c*.so"))
    changed = so.read_bytes() + b"x"
    so.unlink()
    so.write_bytes(changed)
    create.sync("other", uv=uv).ends(result.status, "build: native==1.0 from native-1.0.tar.gz")
    assert (work / "built").exists() and so.read_bytes() != changed

    project.scankit("restore", "--python", python).ends(0, "env sync scankit.lock")
    assert so.read_bytes() == changed


def test_switches_of_the_shell(project):
    """What the user's shell told the build is in the journal, and in the next lock."""
    create = Create(project)
    python = other_environment(project, uv=True)
    variables = {**create.variables(), "NATIVE_FORCE_BUILD": "TRUE", "MAX_JOBS": "2"}
    assert project.env("sync", "other", variables=variables, timeout=300).status in (0, 4)
    project.env("lock", "--python", python, "--out", "other.lock", variables=create.variables()).ends(0)
    [native_] = [one for one in json.loads(text_of("other.lock"))["distributions"] if one["name"] == "native"]
    assert native_["build"]["recorded"]["switches"] == {"NATIVE_FORCE_BUILD": "TRUE"}, native_["build"]["recorded"]


@pytest.mark.ctest(labels="ci;e2e")
def test_failed_build(project, work):
    """Whatever is wrong with the archive or the compiler, the environment is as it was."""
    create = Create(project)
    python = other_environment(project, uv=True)
    before = files_below("other")
    broken = {**create.variables(), "CC": "/bin/false"}
    project.env("sync", "other", variables=broken).ends(5, "native==1.0 cannot be built again from native-1.0.tar.gz: ")
    assert (work / "built").exists() and files_below("other") == before
    (work / "built").unlink()
    place = work / "with a space"
    place.mkdir()
    refused = project.env("sync", "other", variables={**create.variables(), "TMPDIR": str(place)}).ends(2, "has a character that builds cannot take")
    refused.ends(2, "set TMPDIR to another directory")
    with open(project.archive, "ab") as file:
        file.write(b"x")  # the index serves it from now on
    create.sync("other").ends(5, "native==1.0 cannot be built again from native-1.0.tar.gz: ")
    assert not (work / "built").exists() and files_below("other") == before
    assert run(python, "-c", "import alpha; print(alpha.version)") == "1.1\n"


def test_offline(project, tools):
    """From a directory alone: the archive and what its build needs are there, or it is refused by name."""
    project.index.stop()
    create = Create(project)
    other_environment_offline = os.path.abspath("other/bin/python")
    run(project.installers / "python", "-m", "venv", "--without-pip", "other")
    os.mkdir("wheels")
    shutil.copy(project.index.alpha, "wheels")
    refused = create.sync("other", "--offline", "wheels").ends(2, "native==1.0, which was built locally: ")
    refused.ends(2, "its source archive native-1.0.tar.gz is not there either")
    shutil.copy(project.archive, "wheels")
    create.sync("other", "--offline", "wheels").ends(5, "native==1.0 cannot be built again from native-1.0.tar.gz")
    shutil.copy(next(tools.glob("setuptools-75.8.0-*.whl")), "wheels")
    assert create.sync("other", "--offline", "wheels").status in (0, 4)
    assert run(other_environment_offline, "-c", "import native; print(native.answer())") == "42\n"


def test_locked_again(project):
    """Who locks what sync has built finds in its journal against what it was built."""
    python = other_environment(project, uv=True)
    assert Create(project).sync("other").status in (0, 4)
    project.python = python
    os.unlink("scankit.lock")
    project.lock().ends(0)
    build = project.distribution("native")["build"]
    assert build["sdist"]["sha256"] == sha256(project.archive), build
    assert build["recorded"] == {"torch": "", "installer": "uv", "switches": {}}, build


@pytest.mark.ctest(labels="ci;e2e")
def test_wheel_counts_more(project, work):
    """With the packed wheel next to the lock nothing is built, also where an earlier sync has built it."""
    create = Create(project)
    python = other_environment(project, uv=True)
    assert create.sync("other").status in (0, 4)
    (work / "built").unlink()
    project.export("requirements", "requirements.txt").ends(0)
    create.sync("other").ends(0, "matches the lock")
    assert not (work / "built").exists()
    file = next((site_of(python) / "native").glob("_c*.so"))
    assert sha256(file) == sha256(site_of(project.python) / "native" / file.name)
    project.drift("--python", python).ends(0)


def test_real_archives(real_archives, tools, bare_project):
    """Two that people use, of one of which there never was a wheel."""
    project = bare_project
    serve(project.index, *real_archives, *tools.glob("setuptools-75.8.0-*.whl"))
    project.make_environment("env")
    pins = [f"{name}=={version}" for name, version in REAL]
    run(project.installers / "python", "-m", "pip", "--python", project.python, "install", "-q", *pins)
    project.lock().ends(0)
    create = Create(project)
    run(project.installers / "python", "-m", "venv", "--without-pip", "other")
    result = create.sync("other", "--json")
    assert result.status in (0, 4), result
    assert [one["name"] for one in result.json["built"]] == [name for name, _ in REAL], result.json
    run("other/bin/python", "-c", "import docopt, markupsafe._speedups; assert markupsafe.escape('<') == '&lt;'")
    assert create("new").status in (0, 4)
    assert {name: record_of("other")["content"][name] for name, _ in REAL} == {name: record_of("new")["content"][name] for name, _ in REAL}
    steps = {step["what"]: step["state"] for step in result.json["proof"]}
    assert steps["build docopt"] == "passed", result.json["proof"]
