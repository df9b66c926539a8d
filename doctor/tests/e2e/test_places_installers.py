# SPDX-License-Identifier: Apache-2.0
"""Environments as installers make them: uv, conda packages, editable projects. They are broken, and the printed command is run
as it stands. conda itself is on no package index: solver, prefix, records and hard links are py-rattler's (conda.sh); the
program conda is not tested."""
import os
import re
import shutil
from pathlib import Path

import pytest

from environment import MODULE, Environment, module_text
from fixtures import host_python, minor_of, run, shared_python, shell, shell_or_skip
from program import run_program
from test_places import winner

pytestmark = pytest.mark.ctest(group="places", labels="matrix;e2e", timeout=900, fixtures="torch_env;modules")


def run_the_command(command, tools, cwd=None):
    """What the report prints for the first repair, run as it stands."""
    print(command)
    result = run_program("bash", "-ec", command, variables={"PATH": f"{tools}:{os.environ['PATH']}"}, cwd=cwd, timeout=600)
    assert result.status == 0, f"the command fails: {result!r}"


def demo_project(folder):
    """A project with one small extension, with no torch in it."""
    folder.mkdir(parents=True)
    (folder / "setup.py").write_text(f"""\
from setuptools import Extension, setup
setup(name="demo-scan", version="1.0", py_modules=[], ext_modules=[Extension("{MODULE}", ["plain.c"])])
""")
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n')
    (folder / "plain.c").write_text(module_text())
    return folder


def test_uv(scankit, work, monkeypatch):
    uv = Path(shell_or_skip("fx_installers")) / "bin/uv"
    wheels = [shell_or_skip("fx_packages", "markupsafe==3.0.2"), shell_or_skip("fx_wheels")]
    for name, value in (("UV_CACHE_DIR", work / "cache"), ("UV_OFFLINE", 1), ("UV_FIND_LINKS", ",".join(wheels)), ("UV_NO_INDEX", 1)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{uv.parent}:{os.environ['PATH']}")  # uv is printed where it is on PATH
    run(uv, "venv", "-q", "--python", host_python(), "env")
    env = Environment(work / "env")
    python = env.python
    assert not (env.site / "pip").exists(), "uv made a venv with pip"
    demo = demo_project(work / "demo")
    run(uv, "pip", "install", "-q", "--python", python, "markupsafe==3.0.2", "setuptools", "wheel")
    run(uv, "pip", "install", "-q", "--python", python, "--no-build-isolation", "./demo")
    scankit.doctor("--python", python, "--all").diagnosis("healthy")
    text = scankit.report("--python", python)
    assert "uv)" in text.text, text
    truth = run(python, "-c", f"import {MODULE}; print({MODULE}.__file__)").strip()
    [file] = winner(scankit.snapshot("--python", python, "--module", MODULE))
    assert os.path.realpath(file) == os.path.realpath(truth), f"import takes {truth}, the doctor says {file}"

    # 1. A wheel's file is cut short, in place: uv links its files from its cache, so that the cache has it too.
    [speedups] = env.site.glob("markupsafe/_speedups*.so")
    if speedups.stat().st_nlink == 1:
        print("uv copied: no link to its cache")
    os.truncate(speedups, 4000)
    loads = ["-c", "import markupsafe._speedups"]
    assert run_program(python, *loads).status, "the file is whole"
    result = scankit.doctor("--python", python, "--all").diagnosis("broken", "corrupt_binary", found=["corrupt_binary"])
    text = scankit.report("--python", python, "--all")
    assert f"uv cache clean MarkupSafe && uv pip install --python {python} --reinstall MarkupSafe==3.0.2" in text.text, text
    run_the_command(result.json["root"]["fixes"][0]["command"], uv.parent)
    run(python, *loads)
    scankit.doctor("--python", python, "--all").diagnosis("healthy")

    # 2. A module of another project is linked without half of its objects: built again from its sources, by uv.
    shutil.copytree(demo, work / "src")
    run(python, "setup.py", "-q", "sdist", "-d", work / "sdists", cwd=work / "src")
    monkeypatch.setenv("UV_FIND_LINKS", ",".join([*wheels, str(work / "sdists")]))
    env.plain_module(work / "cut", None, "-Wl,-z,now", text=module_text(
        old="PyMODINIT", new="int never_defined(void);\nint use(void) { return never_defined(); }\nPyMODINIT"))
    os.unlink(file)
    shutil.copy2(work / "cut", file)
    assert run_program(python, "-c", f"import {MODULE}").status, "nothing is undefined"
    result = scankit.doctor("--python", python).diagnosis("broken", "own_symbol_undefined", found=["own_symbol_undefined"])
    command = next(fix["command"] for fix in result.json["root"]["fixes"] if fix["kind"] == "rebuild_package")
    assert re.search("^uv pip install --python .* --no-build-isolation --no-deps --no-cache --reinstall-package demo-scan /.*/demo$",
                     command, re.MULTILINE), f"not uv's command: {command}"
    run_the_command(command, uv.parent)
    run(python, "-c", f"import {MODULE}")
    scankit.doctor("--python", python, "--all").diagnosis("healthy")


# A conda prefix of real packages (conda.sh); the printed `conda install` is carried out.
def test_conda(scankit, work, monkeypatch):
    def conda(function, *words):
        return shell(function, *words, file="doctor/tests/e2e/conda.sh")

    if not shutil.which("patchelf"):
        pytest.skip("no patchelf here")
    shell_or_skip("fx_installers")
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(work / "cache"))
    prefix, channel = work / "prefix", work / "channel"
    python = prefix / "bin/python"
    conda("conda_channel_of_demo", channel, host_python())
    conda("conda_channel", "install", channel, "prefix", "demo-ext")
    conda("conda_program", "bin/conda", channel)
    monkeypatch.setenv("PATH", f"{work}/bin:{os.environ['PATH']}")
    if run(python, "-c", "import sys, demo_ext.core as c; print(sys.prefix, c.answer)", status=None).strip() != f"{prefix} 42":
        pytest.skip("this Python does not run from another prefix")
    active = {"CONDA_PREFIX": prefix}
    result = scankit.doctor("--all", variables=active).diagnosis("healthy")
    assert result.json["python"] == str(python), f"CONDA_PREFIX does not choose: {result!r}"
    text = scankit.report(variables=active)
    assert ", conda)" in text.text, text
    facts = scankit.snapshot("--python", python, "--module", "demo_ext.core")
    library = prefix / "lib/libdemo.so.2"
    assert any(str(library) in one["closure"] for one in facts["extensions"]["value"] if one["module"] == "demo_ext.core"), \
        f"$ORIGIN was not understood: {facts['extensions']}"
    assert facts["python"]["value"]["kind"] == "conda"
    assert any(one["name"] == "demo-ext" and one.get("conda_channel") for one in facts["distributions"]["value"]), facts["distributions"]

    # A damaged file comes back with conda's own command, not with pip's.
    file = prefix / f"lib/python{minor_of(python)}/site-packages/demo_ext/core.abi3.so"
    cut = file.read_bytes()[:3000]
    file.unlink()
    file.write_bytes(cut)
    result = scankit.doctor("--python", python, "--all").diagnosis("broken", "corrupt_binary", found=["corrupt_binary"])
    command = result.json["root"]["fixes"][0]["command"]
    run_the_command(command, work / "bin")
    assert f"conda install --prefix {prefix} --force-reinstall demo-ext=1.0" in command.splitlines(), command
    scankit.doctor("--python", python, "--all").diagnosis("healthy")
    # Its library goes: the folder that $ORIGIN leads to is named among those that were searched.
    library.unlink()
    assert run_program(python, "-c", "import demo_ext.core").status, "the library is not missed"
    scankit.doctor("--python", python, "--module", "demo_ext.core").diagnosis("unknown").unknown_names("libdemo.so.2")
    # A venv on top of it is a venv: what it lacks is not conda's to bring.
    run(python, "-m", "venv", "--without-pip", "--system-site-packages", "over")
    text = scankit.report("--python", "over/bin/python")
    assert ", venv)" in text.text, text


# An extension as `pip install -e` leaves it, by setuptools in each of its ways: a .pth line, a finder, links, a compatible .pth.
def test_editable(scankit, environment, work):
    env = environment("bare")
    pip = [shared_python(), "-m", "pip", "--disable-pip-version-check", "-q", "--python", env.python]
    run(*pip, "install", "--no-index", "--find-links", shell("fx_wheels"), "setuptools", "wheel")

    def editable(name, project, *options):
        """Installs the project, and lets the interpreter and the doctor agree on the file."""
        run(*pip, "install", "--no-index", "--no-build-isolation", "--no-deps", *options, "-e", project)
        truth = run(env.python, "-c", f"import {MODULE}; print({MODULE}.__file__)", cwd="/").strip()
        [file] = winner(scankit.snapshot("--python", env.python, "--module", MODULE, cwd="/"))
        assert os.path.realpath(file) == os.path.realpath(truth), f"{name}: import takes {truth}, the doctor says {file}"
        scankit.doctor("--python", env.python, cwd="/").diagnosis("healthy")
        audit = scankit.doctor("--python", env.python, "--all", "--module", "setuptools", cwd="/").json["audit"]
        assert any(one["file"] == file and one["distribution"] == "demo-scan" and one["verdict"] == "loads" for one in audit), \
            f"{name}: --all leaves the file out: {audit}"
        # Its file, damaged, is the one that is named, and the repair builds the project again.
        real = Path(os.path.realpath(truth))
        whole = real.read_bytes()
        real.write_text("<html>\n")
        result = scankit.doctor("--python", env.python, "--module", MODULE, cwd="/")
        result.diagnosis("broken", "corrupt_binary", found=["corrupt_binary"])
        assert result.json["root"]["subject"] == file, f"{name}: another file is named: {result.summary}"
        real.write_bytes(whole)
        print(f"editable: {name}: {truth}")
        run(*pip, "uninstall", "-y", "demo-scan")
        for left in [*project.rglob("*.so"), *project.rglob("build"), *project.rglob("*.egg-info")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    def settings(mode):
        return ["--config-settings", f"editable_mode={mode}"]

    def with_package(project, folder, words):
        (project / folder).mkdir(parents=True)
        (project / folder / "__init__.py").write_text(f"import {MODULE}\n")
        setup = project / "setup.py"
        setup.write_text(setup.read_text().replace("py_modules=[]", words))
        return project

    flat = demo_project(work / "flat")
    editable("one module, the default", flat)
    editable("one module, strict", flat, *settings("strict"))
    editable("one module, compat", flat, *settings("compat"))
    package = with_package(demo_project(work / "with_package"), "demo_scan", 'packages=["demo_scan"]')
    (package / "tests").mkdir()
    editable("a package beside the module, a finder", package)
    editable("a package beside the module, strict", package, *settings("strict"))
    src = with_package(demo_project(work / "src_layout"), "src/demo_scan", 'packages=["demo_scan"], package_dir={"": "src"}')
    editable("the src layout, a .pth line", src)
