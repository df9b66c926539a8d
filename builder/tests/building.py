# SPDX-License-Identifier: Apache-2.0
"""What the tests of `scankit build` are written with."""
import re
import shutil

from fixtures import REPOSITORY, run
from program import run_program


class Builds:
    """`scankit build` of one module, with a cache and a directory of the test's own, unless the options say otherwise."""

    def __init__(self, scankit, work, module):
        self.scankit, self.work, self.module = scankit, work, module
        self.cache, self.out = work / "cache", work / "made"
        self.file = f"{module}.abi3.so"

    def command(self, *words):
        words = ["build", "--module", self.module, *words]
        for option, value in (("--cache-dir", self.cache), ("--out", f"{self.out}/")):
            words += [] if option in words else [option, value]
        return words

    def __call__(self, *words, variables=None, cwd=None, timeout=900, before=None):
        scankit = self.scankit if before is None else self.scankit.with_(before=before)
        return scankit(*self.command(*words), variables=variables, cwd=cwd, timeout=timeout)

    def start(self, *words, **how):
        """In the background; see Scankit.start."""
        return self.scankit.start(*self.command(*words), **how)

    def into(self, name, *words, **how):
        """Builds into WORK/NAME; returns the module."""
        self(*words, "--out", f"{self.work / name}/", **how).ends(0)
        return self.work / name / self.file

    def manifest(self, module):
        return self.scankit("build", "--show-manifest", module)

    def remove_caches(self):
        for folder in self.work.glob("cache*"):
            shutil.rmtree(folder, ignore_errors=True)


def units_of(kernel):
    """How many files a kernel is compiled from."""
    text = (REPOSITORY / "kernels" / kernel / "cuda/units.def").read_text()
    return len(re.findall(r"(?m)^UNIT\(", text))


def first_nvrtc(scankit, cache):
    listed = scankit("build", "--list-toolchains", "--cache-dir", cache)
    found = re.search(r"(?m)^NVRTC [^:]*: (/.*)", listed.out)
    return found and found[1]


def make_odd_nvrtc(work, real, how):
    folder = work / f"odd-{how}"
    library = folder / "libnvrtc.so.13"
    if not library.exists():
        folder.mkdir()
        run("gcc", "-shared", "-fPIC", "-O1", REPOSITORY / "builder/testdata/odd_nvrtc.c", "-o", library, "-ldl")
        (folder / "odd").write_text(f"{real}\n{how}\n")
    return library


def addresses_can_be_fixed():
    """NVRTC's output depends on addresses, which the helper fixes where it may (helpers/gpu/main.cc)."""
    return run_program("setarch", "-R", "true").status == 0


def may_trace():
    return bool(shutil.which("strace")) and run_program("strace", "-o", "/dev/null", "true").status == 0
