# SPDX-License-Identifier: Apache-2.0
"""Ways to have nothing, or the wrong thing, examined. None may be green: each test asserts the exit status and the sentence
that says so. They need no torch."""
import glob
import os
import re
import shutil
import tempfile
import textwrap
from pathlib import Path

import pytest

from fixtures import REPOSITORY, run
from program import run_program

pytestmark = pytest.mark.ctest(group="nothing")
NOTHING = "nothing to check: PyTorch is not installed for this Python and no compiled CUDA extension was found"
GONE = "the Python this venv was made from (/opt/gone/python3.11) no longer exists"
TEMPLATES = REPOSITORY / "ci/templates"


@pytest.fixture(autouse=True)
def project(work, monkeypatch):
    """An empty current folder, in the test's own."""
    (work / "project").mkdir()
    monkeypatch.chdir(work / "project")
    monkeypatch.setenv("LC_ALL", "C")
    return work / "project"


def system_python():
    return os.path.realpath(run("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").strip())


def bare(folder, python="python3"):
    """A venv without torch."""
    run(python, "-m", "venv", "--without-pip", folder)
    return Path(folder)


def site(folder):
    [path] = glob.glob(f"{folder}/lib/python3.*/site-packages")
    return Path(path)


def link(target, path):
    path = Path(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def dangling(folder):
    bare(folder)
    link("/opt/gone/python3.11", f"{folder}/bin/python")
    link("python", f"{folder}/bin/python3")


def another_interpreter(folder, data, mode=0o755):
    """The venv's interpreter is this file instead."""
    for name in glob.glob(f"{folder}/bin/python*"):
        os.unlink(name)
    python = Path(folder, "bin/python")
    python.write_bytes(data)
    python.chmod(mode)


def ends(result, status, sentence):
    """The command's exit status and what it says on either stream; it is not called good."""
    result.ends(status, sentence)
    assert not re.search(r"OK +(healthy|passed)", result.text), f"it is called good: {result!r}"
    return result


# The active environment has no Python that works ---------------------------------------------------------------------------

def test_dangling_virtual_env(scankit, work):
    dangling(work / "env")
    active = {"VIRTUAL_ENV": work / "env"}
    result = ends(scankit("doctor", variables=active), 1, GONE)
    assert "(environment_python_gone)" in result.text, f"the cause is not named: {result!r}"
    assert "UNKNOWN" not in result.text, f"questions about an environment that does not exist: {result!r}"
    command = result.text.rstrip("\n").rpartition("\n")[2]
    assert "--clear" in command, f"the last line is no command: {command}"
    # The printed command repairs it.
    repaired = run_program("sh", "-ec", command)
    assert repaired.status == 0, f"the command fails: {repaired!r}"
    ends(scankit("doctor", "--no-import", variables=active), 4, NOTHING)


def test_dangling_dot_venv(scankit, project):
    dangling(".venv")
    ends(scankit("doctor", "--no-import"), 1, f"./.venv: no Python at {project}/.venv/bin/python: {GONE}")
    ends(scankit("doctor", "--no-import", variables={"CONDA_PREFIX": Path(system_python()).parents[1]}), 1, GONE)


def test_dangling_conda_prefix(scankit, work):
    (work / "conda/bin").mkdir(parents=True)
    (work / "conda/conda-meta").mkdir()
    link("/opt/gone/python3.11", work / "conda/bin/python")
    ends(scankit("doctor", "--no-import", variables={"CONDA_PREFIX": work / "conda"}), 1, "CONDA_PREFIX: no Python at")


def test_conda_prefix_without_python(scankit, work):
    (work / "conda/conda-meta").mkdir(parents=True)
    ends(scankit("doctor", "--no-import", variables={"CONDA_PREFIX": work / "conda"}), 1, "it is a directory without "
                                                                                          "bin/python")
    # conda believes its record of a Python; micromamba asks the pip of the environment first (tried with 24.7 and 2.8).
    for name, advice in (("micromamba", "micromamba cannot install into an environment without Python"),
                         ("conda", f"conda install -p {work}/conda --force-reinstall python")):
        program = work / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        variables = {"CONDA_PREFIX": work / "conda", "PATH": f"{program.parent}:/usr/bin:/bin", "CONDA_EXE": "", "MAMBA_EXE": ""}
        ends(scankit("doctor", "--no-import", variables=variables), 1, advice)


def test_virtual_env_names_no_folder(scankit, work):
    result = scankit("doctor", "--no-import", variables={"VIRTUAL_ENV": work / "deleted"})
    ends(result, 1, f"VIRTUAL_ENV: no Python at {work}/deleted: no such file")
    assert result.last_line == "unset VIRTUAL_ENV", f"no way out is printed: {result!r}"


def test_empty_folder_as_venv(scankit):
    os.mkdir(".venv")
    ends(scankit("doctor", "--no-import"), 1, "it is a directory without bin/python")


def test_home_of_the_venv_gone(scankit):  # a copied interpreter starts and finds no standard library
    bare(".venv")
    another_interpreter(".venv", Path(system_python()).read_bytes())
    settings = Path(".venv/pyvenv.cfg")
    settings.write_text(re.sub(r"(?m)^home = .*", "home = /opt/gone/bin", settings.read_text()))
    ends(scankit("doctor", "--no-import"), 1, "has no standard library")


def test_python_not_executable(scankit):
    bare(".venv")
    another_interpreter(".venv", Path(system_python()).read_bytes(), 0o644)
    ends(scankit("doctor", "--no-import"), 1, "the file is not executable")


def test_python_truncated(scankit):
    bare(".venv")
    whole = Path(system_python()).read_bytes()
    another_interpreter(".venv", whole[:len(whole) // 2])
    ends(scankit("doctor", "--no-import"), 1, "./.venv: no Python at")


def test_python_for_another_architecture(scankit):
    bare(".venv")
    whole = Path(system_python()).read_bytes()
    another_interpreter(".venv", whole[:18] + b"\xb7\0" + whole[20:])  # e_machine: EM_AARCH64
    ends(scankit("doctor", "--no-import"), 1, "it is built for aarch64, and this machine is")


@pytest.fixture
def open_place(scankit, monkeypatch):
    """A folder that is open to all, with a copy of scankit that runs as nobody: what may not be read shows only to somebody
    who is not root. In /tmp, since the build's folder may be closed to others."""
    if os.getuid() != 0 or not os.access("/usr/bin/python3", os.X_OK):  # root's own pyenv is closed to others
        pytest.skip("only root can be somebody else, with the distribution's Python")
    place = Path(tempfile.mkdtemp(prefix="scankit-nothing.", dir="/tmp"))
    place.chmod(0o755)
    shutil.copy2(scankit.path, place / "scankit")
    monkeypatch.chdir("/")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    yield place, scankit.with_(path=place / "scankit", before=nobody, variables={"HOME": "/"})
    os.chdir("/")
    shutil.rmtree(place)


def test_venv_of_another_user(open_place):  # permission denied is not absence
    place, scankit_of_nobody = open_place
    env = bare(place / "env", "/usr/bin/python3")
    (place / "private").mkdir(mode=0o700)
    shutil.copy2(system_python(), place / "private/python3")
    link(place / "private/python3", env / "bin/python")
    result = ends(scankit_of_nobody("doctor", "--no-import", variables={"VIRTUAL_ENV": env}), 1, "permission denied")
    assert not re.search("does not exist|no longer exists", result.text), f"denied is called absent: {result!r}"
    ends(scankit_of_nobody("doctor", "--no-import", "--python", env / "bin/python"), 2, "permission denied")


def test_other_commands_refuse_too(scankit):
    dangling(".venv")
    ends(scankit("snapshot", "--out", "snapshot.json"), 1, GONE)
    for words in ("fix --dry-run", "validate --quick", "build --list-toolchains", "env init", "env lock"):
        ends(scankit(*words.split()), 1, GONE)
    ends(scankit("ci", "run", "--no-import"), 1, "(environment_python_gone)")
    ends(scankit("doctor", "--from", "snapshot.json"), 1, "environment_python_gone")


def test_a_policy_does_not_hide_it(scankit, project):
    dangling(".venv")
    (project / "scankit-ci.yaml").write_text("schema: 1\ncauses: {environment_python_gone: {severity: note}}\n")
    ends(scankit("ci", "run", "--no-import"), 4, "the gate neither passed nor failed")


def test_named_python_is_none(scankit):
    result = ends(scankit("doctor", "--python", "/nope/python"), 2, "no Python at /nope/python: no such file")
    assert len(result.text.splitlines()) == 1, f"more than one line: {result!r}"
    for command in ("snapshot", "env init", "env lock", "validate --quick", "fix --dry-run", "ci run"):
        ends(scankit(*command.split(), "--python", "/nope/python"), 2, "no Python at /nope/python")


# Nothing is installed that could be examined -------------------------------------------------------------------------------

@pytest.fixture
def empty(work):
    """A venv without torch."""
    return bare(work / "env")


def test_nothing_in_doctor(scankit, empty, project):
    ends(scankit("doctor", "--python", empty), 4, NOTHING)
    ends(scankit("doctor", "--no-import", "--python", empty), 4, NOTHING)
    scankit("doctor", "--python", empty, "--allow-empty").ends(0)
    assert scankit.doctor("--python", empty).json["verdict"] == "empty"
    for format in ("junit", "sarif", "markdown", "html", "prometheus"):
        scankit("doctor", "--no-import", "--python", empty, "--report", f"{format}=report.{format}")
    for format in ("markdown", "html", "junit"):
        assert "nothing to check" in (project / f"report.{format}").read_text(), f"the {format} report does not say it"
    assert 'verdict="empty"} 1' in (project / "report.prometheus").read_text(), "the metrics do not say it"


def test_nothing_in_the_gate(scankit, empty, project):
    ends(scankit("ci", "run", "--python", empty), 4, NOTHING)
    scankit("ci", "run", "--python", empty, "--allow-empty").ends(0)
    (project / "scankit-ci.yaml").write_text("schema: 1\nallow_empty: true\n")
    scankit("ci", "run", "--python", empty).ends(0)


def test_nothing_on_a_slurm_node(scankit, empty, work):
    (work / "bin").mkdir()
    for name in ("scontrol", "logger"):
        (work / "bin" / name).write_text(f'#!/bin/sh\necho "$@" >>{work}/{name}.log\n')
        (work / "bin" / name).chmod(0o755)

    def check(**more):
        run_program("bash", TEMPLATES / "slurm-healthcheck.sh", variables={
            "PATH": f"{work}/bin:{os.environ['PATH']}", "SCANKIT": scankit.path, "SCANKIT_PYTHON": empty, "SCANKIT_POLICY": "/none", **more})
    check()
    log = (work / "logger.log").read_text()
    assert re.search("status 4, the node is left as it is: .*nothing to check", log), log
    check(SCANKIT_REQUIRE="torch")
    assert "State=DRAIN Reason=scankit: required_missing" in (work / "scontrol.log").read_text(), "not drained"


def test_nothing_for_the_node_problem_detector(scankit, empty):
    def check(**more):
        return run_program("bash", TEMPLATES / "npd.sh", variables={"SCANKIT": scankit.path, "SCANKIT_PYTHON": empty,
                                                                    "SCANKIT_POLICY": "/none", **more})
    ends(check(), 2, "scankit: nothing to check")
    ends(check(SCANKIT_REQUIRE="torch"), 1, "scankit: required_missing")


def test_nothing_in_a_container(scankit, empty, work):
    (work / "bin").mkdir()
    (work / "bin/scankit").symlink_to(scankit.path)
    text = (TEMPLATES / "kubernetes-probe.yaml").read_text().split("- |\n", 1)[1].split("        timeoutSeconds", 1)[0]
    inside = {"PATH": f"{work}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": empty}
    ends(run_program("sh", "-c", textwrap.dedent(text), variables=inside), 1, "nothing to check")
    ends(run_program("scankit", "ci", "run", "--budget", "50s", variables=inside), 4, "nothing to check")  # the start


def test_required_and_absent(scankit, empty, project):
    ends(scankit("doctor", "--no-import", "--python", empty, "--require", "torch,json"), 1,
         "torch is required but is not installed for this Python")
    ends(scankit("ci", "run", "--no-import", "--python", empty, "--require", "selective_scan_cuda"), 1, "(required_missing)")
    (project / "scankit-ci.yaml").write_text("schema: 1\nrequire: [torch]\nsteps: {doctor: {enabled: false}}\n")
    ends(scankit("ci", "run", "--no-import", "--python", empty), 1, "(required_missing)")
    scankit("doctor", "--no-import", "--python", empty, "--require", "json").ends(0)  # json is required and there


def test_metadata_without_its_package(scankit, empty):
    info = site(empty) / "torch-2.11.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    (info / "RECORD").write_text("torch/__init__.py,,\ntorch-2.11.0.dist-info/RECORD,,\n")
    ends(scankit("doctor", "--no-import", "--python", empty, "--require", "torch"), 1, "its metadata is installed")


def test_torch_without_its_libraries(scankit, empty):
    (site(empty) / "torch").mkdir()
    (site(empty) / "torch/__init__.py").touch()
    (site(empty) / "torch/version.py").write_text("__version__ = '2.11.0+cu130'\n")
    result = scankit("doctor", "--no-import", "--python", empty)
    assert result.status in (1, 4), result


# What was named holds nothing ----------------------------------------------------------------------------------------------

def test_so_of_an_empty_folder(scankit):
    os.mkdir("empty")
    ends(scankit("doctor", "--so", "empty"), 2, "empty")


def test_root_of_an_empty_root(scankit):
    os.mkdir("empty")
    ends(scankit("doctor", "--root", "empty"), 2, "not a root file system:")
    os.makedirs("empty/usr/bin")
    os.mkdir("empty/etc")
    ends(scankit("doctor", "--root", "empty"), 4, "no Python found in the root")


def test_from_an_empty_snapshot(scankit, project):
    (project / "snapshot.json").write_text('{"schema": 1}\n')
    ends(scankit("doctor", "--from", "snapshot.json"), 4, "UNKNOWN")
    ends(scankit("doctor", "--from", "snapshot.json", "--require", "torch"), 4, "UNKNOWN")


def test_log_without_content(scankit, project):
    (project / "build.log").touch()
    result = scankit("doctor", "--log", "build.log")
    assert result.status != 0, f"an empty log is green: {result!r}"


def test_policy_that_switches_everything_off(scankit, empty, project):
    (project / "scankit-ci.yaml").write_text(
        "schema: 1\nsteps: {doctor: {enabled: false}, env_check: {enabled: false}, validate: {enabled: false}}\n")
    ends(scankit("ci", "run", "--python", empty), 4, "nothing was checked: no step was run")


def test_budget_too_short(scankit, empty):
    scankit("doctor", "--no-import", "--python", empty, "--budget", "1ms").ends(4)


def test_extensions_that_cannot_be_read(open_place):
    place, scankit_of_nobody = open_place
    env = bare(place / "env", "/usr/bin/python3")
    version = run("python3", "-c", 'import sys; print("%d%d" % sys.version_info[:2])').strip()
    file = site(env) / f"my_ext.cpython-{version}-x86_64-linux-gnu.so"
    shutil.copy2(system_python(), file)
    file.chmod(0)
    scankit_of_nobody("doctor", "--no-import", "--python", env).ends(4)


def test_unreadable_site_packages(open_place):
    place, scankit_of_nobody = open_place
    env = bare(place / "env", "/usr/bin/python3")
    site(env).chmod(0o700)
    scankit_of_nobody("doctor", "--no-import", "--python", env).ends(4)


def test_pythonpath_names_no_folder(scankit, empty, work):
    ends(scankit("doctor", "--no-import", "--python", empty, variables={"PYTHONPATH": work / "none"}), 4, NOTHING)
