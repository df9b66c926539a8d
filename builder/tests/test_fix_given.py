# SPDX-License-Identifier: Apache-2.0
"""Packages that the user gives: `fix --wheel FILE` and `fix --from-source DIR`. The extension is a small one of torch's cpp_extension,
compiled against the torch of the test environment."""
import os
import re
import zipfile

import pytest

from fixtures import run, shared_python, shell_or_skip
from test_fix_packages import killed_when, restore_once_it_may

pytestmark = pytest.mark.ctest(group="fix_given", timeout=1200, fixtures="torch_env")

EXT = """\
#include <Python.h>
#include <c10/core/DeviceType.h>
#ifdef ANOTHER_TORCH
namespace c10 { void not_of_this_torch(); }
#endif
static PyObject* device(PyObject*, PyObject*) {
#ifdef ANOTHER_TORCH
  c10::not_of_this_torch();
#endif
  return PyUnicode_FromString(c10::DeviceTypeName(c10::DeviceType::CUDA, true).c_str());
}
static PyMethodDef methods[] = {{"device", device, METH_NOARGS, ""}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", 0, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&definition); }
"""
SETUP = """\
import os, sys, time
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
SLOW
setup(name="my-ext", version="VERSION", packages=["my_ext"],
      ext_modules=[CppExtension("my_ext._C", ["ext.cpp"], extra_compile_args=["-O0"] + os.environ.get("MY_FLAGS", "").split())],
      cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
"""
WORKS = 'import torch, my_ext._C; assert my_ext._C.device() == "cuda"; print(my_ext.version)'


@pytest.fixture
def here(repair, monkeypatch):
    """Of torch alone, by a .pth line; nothing comes from an index."""
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return repair("pth")


def sources(folder, version="1.0", package="", ext=EXT, slow=""):
    (folder / "my_ext").mkdir(parents=True, exist_ok=True)
    (folder / "my_ext/__init__.py").write_text(f'version = "{version}"\n{package}\n')
    (folder / "ext.cpp").write_text(ext)
    (folder / "setup.py").write_text(SETUP.replace("VERSION", version).replace("SLOW", slow))
    return folder


def wheel_of(folder, dist, flags=""):
    known = set(dist.glob("*.whl"))
    run(shared_python(), "-m", "pip", "-q", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", dist, folder,
        variables={"MY_FLAGS": flags})
    [wheel] = set(dist.glob("*.whl")) - known
    return wheel


def frozen(here):
    return run(shared_python(), "-m", "pip", "--python", here.python, "freeze")


def untouched(here, before):
    assert here.everything() == before
    assert not (here.env.folder / ".scankit").exists()


def test_strangers_pip(here, work, monkeypatch):
    """`python -m pip` would run the pip/ of the current directory."""
    clone = work / "clone"
    (clone / "pip").mkdir(parents=True)
    (clone / "pip/__init__.py").write_text("")
    (clone / "pip/__main__.py").write_text(f"open({str(work / 'obeyed')!r}, 'w')\n")
    source = sources(work / "src")
    monkeypatch.chdir(clone)
    here.fix("--from-source", source, "--yes").ends(0, "works")
    assert here.runs(WORKS) == "1.0"
    assert not (work / "obeyed").exists()


def test_wheel(here, work):
    """Two wheels of one package in a row, and two restores to the first state."""
    first = wheel_of(sources(work / "src"), work / "dist")
    second = wheel_of(sources(work / "src", "2.0"), work / "dist")
    states = [here.everything()]
    here.fix("--wheel", first, "--dry-run").ends(0, f"{first} was requested").ends(0, "import torch, my_ext._C")
    untouched(here, states[0])
    here.fix("--wheel", first, "--yes").ends(0, f"installed: {first}; `import torch, my_ext._C` works")
    assert here.runs(WORKS) == "1.0"
    assert f"my-ext @ file://{first}" in frozen(here)
    states.append(here.everything())
    here.fix("--wheel", second, "--yes").ends(0)
    assert here.runs(WORKS) == "2.0"
    here.restore().ends(0)
    assert here.everything() == states[1]
    assert here.runs(WORKS) == "1.0"
    here.restore().ends(0)
    assert here.everything() == states[0]


def refused(here, status, what, *words):
    """In one line, before anything is written."""
    result = here.fix(*words, "--yes").ends(status, what)
    [line] = [line for line in result.err.splitlines() if not line.startswith("Python: ")]
    assert re.fullmatch(r"scankit fix: .+; [a-z].+", line), line  # and the next step


@pytest.mark.ctest(labels="matrix;e2e")
def test_wheels_that_do_not_fit(here, work):
    good = wheel_of(sources(work / "src"), work / "dist")
    stem, python, abi, platform = good.name[:-4].rsplit("-", 3)
    before = here.everything()

    def named(*tags):
        copy = work / "renamed" / "-".join([stem, *tags])
        copy.parent.mkdir(exist_ok=True)
        copy = copy.with_name(copy.name + ".whl")
        copy.write_bytes(good.read_bytes())
        return copy

    refused(here, 1, "the wheel is built for cp36-cp36m", "--wheel", named("cp36", "cp36m", platform))
    refused(here, 1, "glibc 2.99", "--wheel", named(python, abi, "manylinux_2_99_x86_64"))
    refused(here, 2, "its name is not that of a wheel", "--wheel", work / "src/setup.py")
    refused(here, 2, "No such file", "--wheel", work / "dist/none-1.0-py3-none-any.whl")
    page = work / "renamed" / good.name
    page.write_text("<!DOCTYPE html>")
    refused(here, 1, "not a zip archive", "--wheel", page)
    torn = work / "torn" / good.name
    torn.parent.mkdir()
    with zipfile.ZipFile(good) as whole, zipfile.ZipFile(torn, "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, whole.read(name)[:5000] if name.endswith(".so") else whole.read(name))
    refused(here, 1, "my_ext/_C", "--wheel", torn)
    bomb = work / "bomb" / good.name
    bomb.parent.mkdir()
    with zipfile.ZipFile(good) as whole, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as blown:
        for name in whole.namelist():
            blown.writestr(name, whole.read(name))
        with blown.open("my_ext/weights.bin", "w") as weights:
            for _ in range(257):
                weights.write(bytes(1 << 20))
    refused(here, 1, "it unpacks to far more", "--wheel", bomb)
    if os.getuid() == 0:
        theirs = named(python, abi, platform)
        os.chown(theirs, 12345, 12345)
        refused(here, 1, "belongs to user 12345", "--wheel", theirs)
    other = wheel_of(sources(work / "other"), work / "other_dist", "-DANOTHER_TORCH")
    refused(here, 1, "not_of_this_torch", "--wheel", other)
    refused(here, 2, "it contains neither pyproject.toml nor setup.py", "--from-source", work / "dist")
    refused(here, 2, "no such directory", "--from-source", work / "nowhere")
    here.fix("--wheel", good, "--from-source", work / "src").ends(2)
    here.fix("--wheel", good, "--module", "selective_scan_cuda").ends(2)
    untouched(here, before)


@pytest.mark.ctest(labels="matrix;e2e")
def test_wheel_that_does_not_import(here, work):
    """Its files are sound, and its Python part is not: seen by the import, and taken back."""
    wheel = wheel_of(sources(work / "src", package='raise RuntimeError("of the wrong kind")'), work / "dist")
    before = here.everything()
    here.fix("--wheel", wheel, "--yes").ends(6, "of the wrong kind").ends(6, "nothing was changed")
    assert here.everything() == before


NO_GPU = 'raise RuntimeError("0 active drivers ([]). There should only be one.")'  # as triton up to 3.3 while it decorates a kernel


def test_package_that_needs_a_gpu(here, work):
    """Only the machine is in the way of its import: it is kept, and told as not tested. Its compiled module is loaded all the same."""
    folder = sources(work / "src", package=NO_GPU)
    wheel = wheel_of(folder, work / "dist")
    before = here.everything()
    done = here.fix("--wheel", wheel, "--yes", "--json").ends(0)
    note = "`import torch, my_ext._C, my_ext` was not tested: triton finds no GPU on this machine"
    assert note in done.json["notes"] and f"installed: {wheel}\n" in done.err, done
    assert done.json["untested"] == [{"part": 0, "statement": "import torch, my_ext._C, my_ext", "why": "triton finds no GPU on this machine"}], done
    assert [step["kept"] for step in done.json["steps"]] == [True]
    assert here.fails(WORKS).endswith("There should only be one.\n")
    here.restore().ends(0)
    assert here.everything() == before
    (work / "src/scankit.module.yaml").write_text("schema: 1\ndistribution: my-ext\nmodules:\n  - name: my_ext._C\n")
    done = here.fix("--from-source", folder, "--yes").ends(0)
    assert f"note: {note}" in done.out and "works" not in done.out, done
    here.restore().ends(0)
    # The file of the wheel has to be there, and its compiled module has to load.
    wrong = sources(work / "wrong", ext=EXT.replace("{ return PyModule_Create(&definition); }", '{ PyErr_SetString(PyExc_ValueError, "of the module"); return nullptr; }'))
    (wrong / "my_ext/__init__.py").write_text(NO_GPU + "\n")
    here.fix("--wheel", wheel_of(wrong, work / "wrong_dist"), "--yes").ends(6, "ValueError: of the module").ends(6, "nothing was changed")
    assert here.everything() == before


def test_wheel_that_its_installer_leaves_out(here, work):
    """As with PIP_DRY_RUN: it ends without an error, and the files of an older release, which import as well, stay."""
    older = wheel_of(sources(work / "src", "0.9"), work / "dist")
    here.fix("--wheel", older, "--yes").ends(0)
    (here.site / "idle.pth").write_text('import os, sys; "install" in sys.orig_argv and os._exit(0)\n')
    before = here.everything()
    wheel = wheel_of(sources(work / "src"), work / "dist")
    here.fix("--wheel", wheel, "--yes").ends(6, "my-ext 0.9 is installed").ends(6, "nothing was changed")
    again = wheel_of(sources(work / "src", "0.9", ext=EXT.replace("CUDA, true", "CUDA, false")), work / "dist2")
    here.fix("--wheel", again, "--yes").ends(6, "is not the file of the wheel").ends(6, "nothing was changed")
    assert here.everything() == before


def test_source(here, work):
    folder = sources(work / "my source")
    before = here.everything()
    here.fix("--from-source", folder, "--dry-run").ends(0, "wheel --no-deps").ends(0, "--no-build-isolation")
    untouched(here, before)
    here.fix("--from-source", folder, "--yes").ends(0, "`import torch, my_ext._C` works")
    assert here.runs(WORKS) == "1.0"
    [kept] = (here.env.folder / ".scankit/wheels").glob("*/*.whl")
    assert f"my-ext @ file://{kept}" in frozen(here), "nothing knows where it came from"
    assert not (folder / "build").exists(), "the build wrote into the user's directory"
    installed = here.everything()
    # Another build of the same release fails, and takes nothing of the one that works.
    sources(folder, package='raise RuntimeError("of the wrong kind")')
    here.fix("--from-source", folder, "--yes").ends(6, "of the wrong kind").ends(6, "nothing was changed")
    assert here.everything() == installed
    assert [kept] == list((here.env.folder / ".scankit/wheels").glob("*/*"))
    assert zipfile.ZipFile(kept).testzip() is None
    here.restore().ends(0)
    assert here.everything() == before


@pytest.mark.ctest(labels="matrix;e2e")
def test_source_that_does_not_compile(here, work, monkeypatch):
    folder = sources(work / "src", ext=EXT + "\nthis is no C++;\n")
    (work / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    before = here.everything()
    here.fix("--from-source", folder, "--yes").ends(5, "exited with status").ends(5, "nothing was changed")
    untouched(here, before)
    assert not list((work / "tmp").glob("scankit*")), "something of the build is left"
    # It compiles, and what comes of it would not load: seen before it is installed.
    monkeypatch.setenv("MY_FLAGS", "-DANOTHER_TORCH")
    sources(folder)
    here.fix("--from-source", folder, "--yes").ends(5, "not_of_this_torch").ends(5, "nothing was changed")
    untouched(here, before)


@pytest.mark.ctest(labels="matrix;e2e")
def test_killed(here, work):
    folder = sources(work / "src", slow=f"""
if "bdist_wheel" in sys.argv and os.path.exists({str(work / 'slow')!r}):
    open({str(work / 'building')!r}, "w").close()
    time.sleep(60)
""")
    before = here.everything()
    (work / "slow").touch()
    assert killed_when(here, (work / "building").exists, "--from-source", folder, "--yes", arch=()), "it ended by itself"
    assert here.everything() == before, "the environment was changed by a build"
    (work / "slow").unlink()
    progress = work / "progress"
    progress.touch()
    wheel = wheel_of(folder, work / "dist")
    if killed_when(here, lambda: "Installing collected" in progress.read_text(errors="replace"), "--wheel", wheel, "--yes", err=progress, arch=()):
        restore_once_it_may(here)
    else:
        here.restore().ends(0)
    assert here.everything() == before
    here.fix("--from-source", folder, "--yes").ends(0)
    assert here.runs(WORKS) == "1.0"
    here.restore().ends(0)
    assert here.everything() == before


@pytest.mark.ctest(labels="matrix;e2e")
def test_settings_of_a_stranger(here, work, monkeypatch):
    """scankit is started in a directory whose pyproject.toml sends packages elsewhere."""
    uv = shell_or_skip("fx_installers")
    monkeypatch.setenv("PATH", f"{uv}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheel = wheel_of(sources(work / "src"), work / "dist")
    config = here.env.folder / "pyvenv.cfg"
    config.write_text(config.read_text() + "uv = 0.9.0\n")  # an environment of uv's
    before = here.everything()
    (work / "stranger").mkdir()
    (work / "stranger/pyproject.toml").write_text(f'[tool.uv.pip]\ntarget = "{work}/elsewhere"\n')
    result = here.fix("--wheel", wheel, "--yes", cwd=work / "stranger").ends(2, "[tool.uv.pip] target of ")
    assert re.search("take the setting out", result.err), result
    untouched(here, before)
    here.fix("--wheel", wheel, "--yes", cwd=work).ends(0)
    assert here.runs(WORKS) == "1.0"
    here.restore().ends(0)
    assert here.everything() == before
    here.fix("--from-source", work / "src", "--yes", cwd=work).ends(0)
    assert here.runs(WORKS) == "1.0"
