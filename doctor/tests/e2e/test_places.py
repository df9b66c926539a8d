# SPDX-License-Identifier: Apache-2.0
"""Where environments live, with the real parts of each place: another user's files, folders that may not be read, several
environments at once, the current folder, pyenv's shims, and extensions that nobody named."""
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from environment import MODULE, plain_module, shared_library
from fixtures import TORCH, has_sitecustomize, host_python, minor_of, run, shared_python, shared_torch, shell_or_skip, site_of
from program import run_program

pytestmark = pytest.mark.ctest(group="places", fixtures="torch_env;modules")


def winner(facts, module=MODULE):
    """The files that `import` takes by the doctor's own account."""
    return [one["path"] for one in facts["extensions"]["value"] if one.get("selected") and one["module"] == module]


# A health check as root, in the environment of somebody who left code that runs at every start ---------------------------------

MARKING_MODULE = """
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void mark(void) {
  FILE* file = fopen("WORK/mark", "a");
  if (file) fprintf(file, "extension %d\\n", (int)getuid()), fclose(file);
}
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "MODULE", 0, -1, 0};
PyMODINIT_FUNC PyInit_MODULE(void) { return PyModule_Create(&definition); }
"""


class Marks:
    """An environment whose files leave a mark when they are run."""

    def __init__(self, env):
        self.env, self.file = env, env.work / "mark"
        (env.site / "sitecustomize.py").write_text(f"import os; open('{self.file}', 'a').write('sitecustomize %d\\n' % os.getuid())\n")
        (env.site / "mark.pth").write_text(f"import os; open('{self.file}', 'a').write('pth %d\\n' % os.getuid())\n")
        env.plain_module(env.site / f"{MODULE}.abi3.so", text=MARKING_MODULE.replace("WORK", str(env.work)).replace("MODULE", MODULE))
        self.file.unlink(missing_ok=True)

    def none_by(self, what):
        assert not self.file.exists(), f"{what} ran that user's code: {self.file.read_text()}"

    def give_away(self, owner="12345:12345"):
        run("chown", "-R", owner, self.env.folder)


@pytest.fixture
def marks(environment):
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    return Marks(environment("bare"))


def test_root_on_another_users_files(scankit, marks):
    marks.give_away()
    python = ["--python", marks.env.python]
    result = scankit.doctor(*python)
    marks.none_by("doctor")
    result.diagnosis("healthy")
    text = scankit.report(*python)
    assert "belongs to user 12345, and scankit runs as root" in text.text, text
    assert "run scankit as that user, or allow it with --import" in text.text, text
    scankit.doctor(*python, "--all", "--module", MODULE)
    marks.none_by("doctor --all")
    observations = scankit.snapshot("--import", *python)["observations"]
    marks.none_by("snapshot --import")
    assert observations["state"] == "not-run" and 12345 in observations["note"]["arguments"], observations
    assert re.search("user {}.*run scankit as that user", observations["note"]["message"]), observations
    result = scankit("validate", "--quick", *python)
    marks.none_by("validate")
    assert result.status == 4, result
    result.has_line("user 12345.*--import")
    # Asked for, it runs: the same marks that the interpreter itself makes.
    scankit.doctor(*python, "--import").diagnosis("healthy")
    made = marks.file.read_text().splitlines()
    for what in ["pth", "extension"] + ([] if has_sitecustomize(host_python()) else ["sitecustomize"]):
        assert f"{what} 0" in made, f"--import did not run {what}"


def contents(folder):
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file() and not file.is_symlink()}


# A fix ends in an import that proves it, and its journal moves files: neither is for root here.
def test_root_fixes_nothing_of_others(scankit, marks):
    env = marks.env
    (env.site / "shared-torch.pth").write_text(f"{site_of(shared_python())}\n")
    (env.site / f"{MODULE}.abi3.so").write_text("<html>404</html>\n")
    (env.folder / ".scankit/journals").mkdir(parents=True)
    marks.give_away()
    before = contents(env.folder)
    for command in (["fix", "--yes"], ["restore"]):
        result = scankit(*command, "--python", env.python)
        marks.none_by(command[0])
        assert result.status != 0 and "belongs to user 12345" in result.text, result
    assert contents(env.folder) == before, "something of that user's was changed"
    # Root's own environment that takes its torch, or one line of a .pth file, from another user is that user's code too.
    marks.give_away("0:0")
    os.chown(env.site / "mark.pth", 12345, -1)
    shutil.rmtree(env.folder / ".scankit")
    scankit.doctor("--python", env.python)
    marks.none_by("doctor, beside a .pth file of that user,")
    result = scankit("fix", "--yes", "--python", env.python)
    marks.none_by("fix, beside a .pth file of that user,")
    assert "mark.pth belongs to user 12345" in result.text, result


# The doctor as somebody else than root, who may not read everything --------------------------------------------------------------

@pytest.fixture
def somebody(scankit, monkeypatch):
    """The folder of a user who is not root, with an environment of theirs, and scankit as that user runs it. With the
    interpreter of the distribution, in a folder that is open to all: those of the other tests lie below a home folder."""
    if os.getuid() != 0 or not shutil.which("setpriv") or not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("only root can be somebody else, with the distribution's Python")
    place = Path(tempfile.mkdtemp()).resolve()
    try:
        place.chmod(0o755)
        monkeypatch.chdir(place)
        shutil.copy2(scankit.path, place / "scankit")
        if run_program("/usr/bin/python3", "-m", "venv", "--without-pip", place / "env").status:
            pytest.skip("the distribution's Python makes no venv")
        python = place / "env/bin/python"
        file = site_of(python) / f"{MODULE}.abi3.so"
        plain_module(file, host_python(), "plain.c")  # the stable ABI: any Python's headers serve
        run("chown", "-R", "12345:12345", place)
        as_somebody = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--inh-caps=-all", "env", f"HOME={place}"]
        if run_program(*as_somebody, python, "-c", f"import {MODULE}").status:
            pytest.skip("another user cannot run the distribution's Python here")
        yield scankit.with_(path=place / "scankit", before=as_somebody), python, file
    finally:
        os.chdir("/")
        shutil.rmtree(place)


def test_unreadable_module(somebody):
    scankit, python, file = somebody
    scankit.doctor("--python", python).diagnosis("healthy")
    os.chown(file, 0, 0)
    file.chmod(0o600)
    assert run_program(*scankit.before, python, "-c", f"import {MODULE}").status, "the module can be read"
    for words in ([], ["--no-import"]):
        scankit.doctor("--python", python, *words).diagnosis("unknown").unknown_names(file.name, "ermission denied")


def test_unreadable_site_packages(somebody):
    scankit, python, file = somebody
    os.chown(file.parent, 0, 0)
    file.parent.chmod(0o700)
    scankit.doctor("--python", python, "--module", MODULE).diagnosis("unknown").unknown_names(str(file.parent), "ermission denied")
    text = scankit.report("--python", python)
    assert "installed: selective" not in text.out, f"it claims to know what is installed: {text!r}"
    assert re.search("^  module  cannot list", text.out, re.MULTILINE), f"the text does not say why: {text!r}"


# Several copies, several environments ------------------------------------------------------------------------------------------

# Four places hold a copy; which one import takes changes with the place that it is started in.
def test_which_copy_wins(scankit, environment, work):
    env = environment("bare")
    env.use_system_packages()

    def copy_in(folder):
        env.plain_module(folder / f"{MODULE}.abi3.so", "plain.c")

    def same_winner(**variables):
        """What `import` takes, by the interpreter itself, is the one file that the doctor calls selected."""
        truth = run(env.python, "-c", f"import {MODULE}; print({MODULE}.__file__)", variables=variables).strip()
        says = winner(scankit.snapshot("--python", env.python, "--module", MODULE, variables=variables))
        assert [os.path.realpath(path) for path in says] == [os.path.realpath(truth)], f"import takes {truth}, the doctor says {says}"

    user = str(work / "user")
    copy_in(work / f"user/lib/python{minor_of(env.python)}/site-packages")
    same_winner(PYTHONUSERBASE=user)
    copy_in(env.site)
    same_winner(PYTHONUSERBASE=user)
    copy_in(work / "by-variable")
    same_winner(PYTHONUSERBASE=user, PYTHONPATH=f"{work}/none:by-variable")
    copy_in(work)  # as `setup.py build_ext --inplace` leaves it
    same_winner(PYTHONUSERBASE=user, PYTHONPATH=f"{work}/none:by-variable")
    same_winner(PYTHONSAFEPATH="1", PYTHONPATH="by-variable")
    same_winner(PYTHONUSERBASE=user, PYTHONNOUSERSITE="1")


# The stale copy is the one in front; the good one is named as hidden.
def test_stale_copy_in_front(scankit, environment, work):
    env = environment("bare")
    env.plain_module(env.site / f"{MODULE}.abi3.so", "plain.c")
    for folder, path in ((work / "by-variable", str(work / "by-variable")), (work, "")):
        stale = folder / f"{MODULE}.abi3.so"
        folder.mkdir(exist_ok=True)
        stale.write_text("<html>404</html>\n")
        imported = run_program(env.python, "-c", f"import {MODULE}", variables={"PYTHONPATH": path or "."})
        assert imported.status, f"the stale copy in {folder} hides nothing"
        result = scankit.doctor("--python", env.python, variables={"PYTHONPATH": path}).diagnosis("broken", "several_copies|corrupt_binary")
        root = result.json["root"]
        assert root["subject"] == str(stale) or str(stale) in str(root["evidence"]), f"the stale file is not the subject: {root}"
        stale.unlink()


# VIRTUAL_ENV names one environment, PATH another, ./.venv is a third.
def test_several_environments(scankit, environment, work):
    one, two = environment("bare", "one"), environment("bare", "two")
    environment("bare", ".venv")
    elsewhere = work / "elsewhere"
    elsewhere.mkdir()
    two.plain_module(two.site / f"{MODULE}.abi3.so", "plain.c")
    on_path = {"PATH": f"{two.folder}/bin:{os.environ['PATH']}"}
    active = {**on_path, "VIRTUAL_ENV": one.folder}

    def chosen(expected, variables, cwd=work):
        result = scankit.doctor(variables=variables, cwd=cwd)
        assert result.json["python"] == str(expected), result

    def says(text, variables, cwd=work):
        result = scankit.report(variables=variables, cwd=cwd)
        assert text in result.text, result

    chosen(one.python, active)
    says("one/bin/python (VIRTUAL_ENV)", active)
    chosen(work / ".venv/bin/python", on_path)
    chosen(two.python, on_path, elsewhere)
    # A VIRTUAL_ENV that was removed since is still the one that is meant.
    says(f"VIRTUAL_ENV: no Python at {work}/gone", {**on_path, "VIRTUAL_ENV": work / "gone"}, elsewhere)
    # Another one that holds torch is named, since that is where the module may have gone.
    (two.site / "shared-torch.pth").write_text(f"{site_of(shared_python())}\n")
    says(f"also has torch {TORCH}", active)


# pyenv's real shims: scripts that run pyenv, which picks the version.
def test_pyenv_shims(scankit, work):
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = sorted(folder.name for folder in (root / "versions").glob("3.1[0-3].*"))
    if not os.access(root / "libexec/pyenv", os.X_OK) or len(versions) < 2 or not os.access(root / "shims/python", os.X_OK):
        pytest.skip("no pyenv with two Pythons here")
    by_shim = {"PATH": f"{root}/shims:/usr/bin:/bin", "PYENV_VERSION": None}
    for version in versions[:2]:
        (work / ".python-version").write_text(f"{version}\n")
        python = root / f"versions/{version}/bin/python"
        truth = run_program("python", "-c", "import os, sys; print(os.path.realpath(sys.executable))",
                            variables={"PATH": f"{root}/shims:{root}/bin:/usr/bin:/bin", "PYENV_VERSION": None}).ends(0).out.strip()
        result = scankit.doctor(variables=by_shim)
        assert result.json["python"] == str(python), f"not pyenv's choice {truth}: {result!r}"
        assert os.path.realpath(python) == truth, f"pyenv runs {truth}"
        text = scankit.report(variables=by_shim)
        assert f"(PATH, through the script {root}/shims/python" in text.text, text


# A venv without pip, and no uv in it: the command must not be one that this Python does not have.
def test_no_pip(scankit, environment):
    env = environment("bare")
    (env.site / "broken.abi3.so").write_bytes(os.urandom(100))
    info = env.site / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "RECORD").write_text("broken.abi3.so,,\nbroken-1.0.dist-info/METADATA,,\n")
    result = scankit.doctor("--python", env.python, "--all").diagnosis("broken", "corrupt_binary")
    command = (result.json["root"]["fixes"] or [{}])[0].get("command") or ""
    assert "env/bin/python -m pip" not in command, f"the command uses a pip that is not here: {command}"


# Extensions that nobody named ---------------------------------------------------------------------------------------------------

# torchvision is the one that is broken: built for torch 2.6, beside this torch. It imports torch twice.
@pytest.mark.ctest(timeout=900)
def test_third_party_extension(scankit, environment):
    env = environment("plain")
    run("unzip", "-q", shell_or_skip("fx_extension_wheel"), "-d", env.site)
    loaded = run_program(env.python, "-c", f"import torch; torch.ops.load_library('{env.site}/torchvision/_C.so')")
    assert loaded.status, "torchvision's _C loads"
    for way in ("--import", "--no-import"):
        result = scankit.doctor("--python", env.python, way).diagnosis("broken", "torch_version_mismatch")
        assert result.json["root"]["subject"].endswith("torchvision/_C.so"), f"the file is not named: {result.summary}"


# An extension whose library lies where no loader looks; its package loads the library first. Without that, it is broken.
@pytest.mark.ctest(labels="matrix;e2e", timeout=900)
def test_third_party_loads_by_itself(scankit, environment, work):
    env = environment("plain")
    package = env.site / "lazy"
    library = package / "libs/liblazy-0a1b.so.1"
    shared_library(library, "int lazy_answer(void) { return 42; }\n", "liblazy.so.1")
    (work / "liblazy.so").symlink_to(library)
    shared_library(package / "_C.so", "int lazy_answer(void); int lazy(void) { return lazy_answer(); }\n", None, f"-L{work}", "-llazy",
                   f"-L{shared_torch()}/lib", "-Wl,--no-as-needed", "-lc10")
    (package / "__init__.py").write_text("import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'libs', "
                                         "'liblazy-0a1b.so.1'), ctypes.RTLD_GLOBAL)\n")
    run(env.python, "-c", f"import torch, lazy, ctypes; ctypes.CDLL('{package}/_C.so')")
    scankit.doctor("--python", env.python, "--import").diagnosis("healthy")
    library.unlink()
    (package / "__init__.py").unlink()
    scankit.doctor("--python", env.python, "--import").diagnosis("unknown")
