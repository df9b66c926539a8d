# SPDX-License-Identifier: Apache-2.0
"""What a fix leaves alone: an environment in which nothing is broken, extensions that it cannot repair, distributions that came
from no index, the user's build tools."""
import difflib
import functools
import http.server
import re
import shutil
import threading
from pathlib import Path

import pytest

from environment import MODULE
from fixtures import host_python, include_of, run, shared_python, shared_torch, shell, shell_or_skip, site_of
from program import run_program
from sdists import source_archive

pytestmark = pytest.mark.ctest(group="fix_only", timeout=600, fixtures="torch_env")
NOBODYS = "_ZN3c1017not_of_this_torchEv"


@pytest.fixture
def here(repair, monkeypatch):
    """Of torch alone, by a .pth line."""
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    return repair("pth")


def fix(here, *words):
    return here.fix("--arch", "compute_75", *words)


def freeze(here):
    return sorted(run(shared_python(), "-m", "pip", "--python", here.python, "freeze", "--all").splitlines())


def untouched(here, before):
    assert here.everything(contents=False) == before
    assert not (here.env.folder / ".scankit").exists()


def extension(here, name, needs=""):
    """A Python module that needs torch's libc10 and, where `needs` is named, a symbol of nobody's."""
    declared, called = (f"extern void {needs}(void);", f"{needs}();") if needs else ("", "")
    run("gcc", "-shared", "-fPIC", f"-I{include_of(here.python)}", "-x", "c", "-", "-x", "none", "-o",
        here.site / f"{name}{here.env.suffix}", f"-L{shared_torch() / 'lib'}", "-Wl,--no-as-needed", "-lc10", stdin=f"""
#include <Python.h>
{declared}
static struct PyModuleDef def = {{PyModuleDef_HEAD_INIT, "{name}", 0, -1, 0, 0, 0, 0, 0}};
PyMODINIT_FUNC PyInit_{name}(void) {{ {called} return PyModule_Create(&def); }}
""")


def test_healthy(here):
    before = here.everything(contents=False)
    fix(here, "--yes").ends(0, "nothing to do")  # there is no Mamba
    untouched(here, before)
    extension(here, "my_ext_C")
    before = here.everything(contents=False)
    fix(here, "--yes").ends(0)
    untouched(here, before)
    fix(here, "--module", "causal_conv1d_cuda", "--yes").ends(0)
    here.restore().ends(0)


def test_third_party(here):
    extension(here, "my_ext_C", NOBODYS)
    assert "undefined symbol" in here.fails("import torch, my_ext_C")
    before = here.everything(contents=False)
    fix(here, "--yes").ends(1, "my_ext_C")
    untouched(here, before)
    here.break_module("causal_conv1d_cuda")
    # What can be repaired is, and the rest is no success.
    fix(here, "--yes").ends(1, "repaired: `import causal_conv1d_cuda` works").ends(1, "still broken: ")
    here.runs("import torch, causal_conv1d_cuda")


class AskedIndex(http.server.SimpleHTTPRequestHandler):
    def log_message(self, _, *words):
        self.server.asked.append(" ".join(map(str, words)))


@pytest.fixture
def asked(work, monkeypatch):
    """What is asked of an index that has a my-ext 1.0 of its own."""
    page = work / "served/simple/my-ext/index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="my_ext-1.0-py3-none-any.whl">my_ext-1.0-py3-none-any.whl</a>')
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(AskedIndex, directory=work / "served"))
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple")
    yield server.asked
    server.shutdown()
    server.server_close()


def local_project(source):
    (source / "my_ext").mkdir(parents=True)
    (source / "my_ext/__init__.py").write_text("import torch, my_ext_C\n")
    (source / "ext.c").write_text(f"""\
#include <Python.h>
#ifdef ANOTHER_TORCH
extern void {NOBODYS}(void);
#else
static void {NOBODYS}(void) {{}}
#endif
static struct PyModuleDef def = {{PyModuleDef_HEAD_INIT, "my_ext_C", 0, -1, 0, 0, 0, 0, 0}};
PyMODINIT_FUNC PyInit_my_ext_C(void) {{ {NOBODYS}(); return PyModule_Create(&def); }}
""")
    (source / "setup.py").write_text("""\
import os, torch
from setuptools import Extension, setup
setup(name="my-ext", version="1.0", packages=["my_ext"],
      ext_modules=[Extension("my_ext_C", ["ext.c"], library_dirs=[os.path.dirname(torch.__file__) + "/lib"], libraries=["c10"],
                             extra_link_args=["-Wl,--no-as-needed"], define_macros=[(m, "1") for m in [os.environ.get("MACRO")] if m])])
""")


def test_local_source(here, asked, work):
    source = work / "my source"
    local_project(source)
    # What this build leaves in the folder is newer than every source: setuptools would take it for finished.
    run(shared_python(), "-m", "pip", "-q", "--python", here.python, "install", "--no-deps", "--no-build-isolation", source,
        variables={"MACRO": "ANOTHER_TORCH"})
    assert (source / "build").is_dir(), "pip does not build in the folder"
    frozen, before = freeze(here), here.everything(contents=False)
    here.fails("import my_ext")
    result = fix(here, "--module", "my_ext_C", "--yes").ends(0)
    assert re.search("my-ext @ file:///.*/my%20source", result.out), result
    here.runs("import my_ext")
    assert freeze(here) == frozen, "another package changed"
    assert not [line for line in asked if "my-ext" in line], asked
    here.restore().ends(0)
    assert here.everything(contents=False) == before
    source.rename(work / "gone")
    fix(here, "--module", "my_ext_C", "--yes").ends(1, "which no longer exists; no package index is used for it")
    assert not [line for line in asked if "my-ext" in line], asked


BUILD_TOOLS = ("setuptools", "wheel", "packaging", "pkg_resources", "_distutils_hack", "distutils-precedence.pth", "pip")


@pytest.fixture
def without_build_tools(repair, work, monkeypatch):
    """Torch and what it needs, and no setuptools, wheel or packaging: these come for the build alone."""
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    here, shared = repair("bare"), work / "torch_only"
    shared.mkdir()
    for path in site_of(shared_python()).iterdir():
        if not path.name.startswith(BUILD_TOOLS):
            (shared / path.name).symlink_to(path)
    (here.site / "shared-torch.pth").write_text(f"{shared}\n")
    # The pip of the Python below it serves it, else one of its own; ensurepip of 3.11 and older brings setuptools too.
    if run_program(host_python(), "-m", "pip", "--version").status and not shutil.which("uv"):
        run(here.python, "-m", "ensurepip")
        run(here.python, "-m", "pip", "uninstall", "-q", "-y", "setuptools", status=None)
    here.fails("import setuptools")
    return here


@pytest.mark.ctest(labels="matrix;e2e")
def test_build_tools(without_build_tools, work, monkeypatch):
    here, index = without_build_tools, work / "index"
    source_archive(index, "mamba-ssm", "99.4", files={
        "mamba_ssm/__init__.py": "import torch, needed, selective_scan_cuda; Mamba = torch.nn.Module\n",
        "setup.py": """\
import os, torch, packaging
from setuptools import setup
from wheel.bdist_wheel import bdist_wheel
assert os.environ["MAMBA_SKIP_CUDA_BUILD"] == "TRUE"
setup(name="mamba-ssm", version="99.4", packages=["mamba_ssm"], install_requires=["needed"])
"""})
    needed = source_archive(index, "needed", "1.0", files={
        "needed.py": "", "setup.py": 'from setuptools import setup\nsetup(name="needed", version="1.0", py_modules=["needed"])\n'})
    run(shared_python(), "-m", "pip", "-q", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", index, needed)
    needed.unlink()
    frozen = freeze(here)
    (work / "tmp").mkdir()
    with monkeypatch.context() as settings:
        for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", f"{index} {shell_or_skip('fx_wheels')}"), ("TMPDIR", work / "tmp"),
                            ("PIP_USER", "1")):  # as with `user = true` in a pip.conf: a venv refuses to install for the user alone
            settings.setenv(name, str(value))
        fix(here, "--package", "mamba-ssm", "--yes").ends(0)
        here.runs("from mamba_ssm import Mamba")  # nothing is imported before it
    changes = [line[2:] for line in difflib.ndiff(frozen, freeze(here)) if line[:1] in "+-"]
    changed = sorted(re.match(r"[\w.-]+", line)[0] for line in changes)
    assert changed == ["mamba-ssm", "needed", "scankit-selective-scan-cuda"], changes
    assert not list((work / "tmp").glob("scankit*")), "something of the tools is left"


# The check is that of pybind11 (PYBIND11_CHECK_PYTHON_VERSION).
OF_ONE_PYTHON = """
#include <Python.h>
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  const char *compiled = TEXT(PY_MAJOR_VERSION) "." TEXT(PY_MINOR_VERSION), *running = Py_GetVersion();
  if (strncmp(running, compiled, strlen(compiled)) != 0)
    return PyErr_Format(PyExc_ImportError,
                        "Python version mismatch: module was compiled for Python %s, but the interpreter version is incompatible: %s.",
                        compiled, running);
  return PyModule_Create(&def);
}
"""


@pytest.mark.ctest(labels="matrix;e2e")
def test_another_python(here):
    """A module of another Python under this one's name: the files alone do not tell."""
    other = shell("fx_other_python", here.python)
    if not other:
        pytest.skip("no other Python here")
    include = run(other, "-c", 'import sysconfig; print(sysconfig.get_path("include"))').strip()
    if not Path(include, "Python.h").exists():
        pytest.skip(f"no headers of {other}")
    run("gcc", "-shared", "-fPIC", f"-I{include}", "-x", "c", "-", "-o", here.env.module_file, stdin=OF_ONE_PYTHON)
    assert "Python version mismatch" in here.fails(f"import torch, {MODULE}")
    before = here.everything(contents=False)
    fix(here, "--yes").ends(0)
    assert here.module_file(MODULE).endswith(".abi3.so")
    here.restore().ends(0)
    assert here.everything(contents=False) == before
