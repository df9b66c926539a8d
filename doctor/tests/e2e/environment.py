# SPDX-License-Identifier: Apache-2.0
"""A scratch environment: a real venv of one test, and the ways in which compiled modules and packages get into it."""
import contextlib
import functools
import re
import shutil
from pathlib import Path

from fixtures import MODULE_SOURCES, has_sitecustomize, include_of, run, shared_python, shared_torch, shell, site_of, suffix_of, \
    python_with_torch, torch_of

MODULE = "selective_scan_cuda"


class Environment:
    """A venv at `folder`. What a test puts beside it has the venv's name and a suffix (beside()), so that one folder holds
    all of a test. `modules` is where build_modules.sh left its objects."""

    def __init__(self, folder, modules=None):
        self.folder = Path(folder)
        self.work = self.folder.parent
        self.python = self.folder / "bin/python"
        self.modules = Path(modules) if modules else None
        self.at_end = contextlib.ExitStack()  # what a test mounts or starts is undone by it

    @classmethod
    def make(cls, folder, way="pth", modules=None):
        """`way` pth: torch by a .pth line to the shared environment; plain: torch's files hard-linked into the venv's own
        site-packages, as uv installs them, for tests that change what lies beside torch; bare: without torch; tested: a
        .pth line to the torch of python_with_torch()."""
        if way == "tested":
            shutil.rmtree(folder, ignore_errors=True)
            run(python_with_torch(), "-m", "venv", "--without-pip", folder)
            (site_of(Path(folder) / "bin/python") / "torch.pth").write_text(f"{torch_of(python_with_torch()).parent}\n")
        else:
            shell("fx_scratch_env", folder, way)
        return cls(folder, modules)

    def make_again(self, way):
        shell("fx_scratch_env", self.folder, way)

    def remove(self):
        """The reports of a test stay, its environment does not: those of all tests would be gigabytes of links."""
        self.at_end.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @functools.cached_property
    def site(self):
        return site_of(self.python)

    @functools.cached_property
    def suffix(self):
        """.cpython-311-x86_64-linux-gnu.so, say"""
        return suffix_of(self.python)

    @property
    def include(self):
        return include_of(self.python)

    @property
    def module_file(self):
        """Where the module belongs whose import the tests are about."""
        return self.site / (MODULE + self.suffix)

    def beside(self, name):
        """A path of the test's own: `env.NAME` beside `env`."""
        return Path(f"{self.folder}.{name}")

    def folder_beside(self, name):
        path = self.beside(name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    # Modules -------------------------------------------------------------------------------------------------------------

    def objects(self, *names):
        return [self.modules / f"{name}.o" for name in names]

    def link_module(self, output, *inputs):
        """As setuptools links a torch extension: no RUNPATH, and undefined names are allowed."""
        torch = self.site / "torch"
        output = Path(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        run("g++", "-shared", "-o", output, *inputs, f"-L{(torch if torch.is_dir() else shared_torch()) / 'lib'}", "-lc10",
            "-ltorch_cpu", "-ltorch", "-ltorch_python")

    def link_good(self, output=None):
        self.link_module(output or self.module_file, *self.objects("binding", "scan"))

    def link_stale(self, output=None):
        """Against the installed torch some names of these objects are undefined; -shared lets them pass, as it did for the user."""
        self.link_module(output or self.module_file, *self.objects("binding-other", "scan-other"))

    def cut_module(self, size):
        """The good module, cut to `size` bytes (to half of it where `size` is None)."""
        self.link_good()
        whole = self.module_file.read_bytes()
        self.module_file.write_bytes(whole[:size or len(whole) // 2])

    def plain_module(self, output, source=None, *flags, text=None, python=None):
        """A C module compiled for this Python: `source`, a file of module/, or `text`."""
        plain_module(output, python or self.python, source, *flags, text=text)

    def needs_library(self, soname, name, version=""):
        """The good module with one call of `name`, which the library `soname` had where the module was linked."""
        stubs = self.folder_beside("stub")
        stub = stub_library(stubs, soname, name, version)
        asks = stubs / "asks.o"
        run("gcc", "-O1", "-fPIC", "-x", "c", "-c", "-", "-o", asks,
            stdin=f"int {name}(void); int selective_scan_asks(void); int selective_scan_asks(void) {{ return {name}(); }}\n")
        self.link_module(self.module_file, *self.objects("binding", "scan"), asks, stub)
        shutil.rmtree(stubs)

    # Packages: real ones, without their compiled part ----------------------------------------------------------------------

    def pip_install(self, *words):
        run(shared_python(), "-m", "pip", "--disable-pip-version-check", "-q", "--python", self.python, "install", "--no-deps",
            "--no-index", *words)

    def install_mamba(self):
        """The real mamba-ssm, with its metadata."""
        self.pip_install("--find-links", Path(shell("fx_mamba_wheel")).parent, "mamba-ssm")

    def install_release(self, name, version):
        """By name, as from an index: pip notes of a wheel that is named by its path where it came from."""
        self.pip_install("--no-compile", "--find-links", Path(shell("fx_python_wheel", name, version)).parent, f"{name}=={version}")

    def install_with(self, *requirements):
        """From the index by way of the cache."""
        shell("install_with", self.folder, *requirements, file="doctor/tests/e2e/packages.sh")

    def install_transformers_4(self):
        """What `import transformers.generation` of a 4.x needs beside the shared environment's packages."""
        shell("install_transformers_4", self.folder, file="doctor/tests/e2e/packages.sh")

    def link_conv(self, arguments):
        """A causal_conv1d_cuda whose causal_conv1d_fwd takes that many arguments."""
        self.link_module(self.site / f"causal_conv1d_cuda{self.suffix}", *self.objects(f"conv{arguments}"))

    def at_start(self, code):
        """Python code that this interpreter runs at every start from now on."""
        if has_sitecustomize(self.python):
            (self.site / "at_start.py").write_text(code)
            (self.site / "at_start.pth").write_text("import at_start\n")
        else:
            (self.site / "sitecustomize.py").write_text(code)

    def use_system_packages(self):
        """The user site is looked at only where the system's packages are."""
        settings = self.folder / "pyvenv.cfg"
        settings.write_text(re.sub(r"(?m)^include-system-site-packages = .*", "include-system-site-packages = true",
                                   settings.read_text()))


def plain_module(output, python, source=None, *flags, text=None):
    """A C module compiled for `python`: `source`, a file of module/, or `text`."""
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    code = ["-x", "c", "-", "-x", "none"] if text is not None else [MODULE_SOURCES / source]
    run("gcc", "-shared", "-fPIC", "-O1", "-w", f"-I{include_of(python)}", *code, "-o", output, *flags, stdin=text)


def stub_library(folder, soname, name, version=""):
    """What the linker needs of a library that is not here, with one function in it. Returns its path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    script = []
    if version:
        (folder / f"{soname}.map").write_text(f"{version} {{ global: *; }};\n")
        script = [f"-Wl,--version-script,{folder / f'{soname}.map'}"]
    run("gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", f"-Wl,-soname,{soname}", *script, "-o", folder / soname,
        stdin=f"int {name}(void) {{ return 0; }}\n")
    return folder / soname


def shared_library(output, code, soname=None, *flags):
    """A library of `code`, for the linker and the loader."""
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", *([f"-Wl,-soname,{soname}"] if soname else []), *flags, "-o", output,
        stdin=code)


def module_text(old=MODULE, new=MODULE):
    """module/plain.c, with `old` replaced."""
    return (MODULE_SOURCES / "plain.c").read_text().replace(old, new)
