# SPDX-License-Identifier: Apache-2.0
"""`scankit doctor --all` against the real interpreter, in an environment with many compiled packages: every extension is
imported in a process of its own, below its package, and each answer of the audit is held to what happened. Then extensions
are broken by real mechanisms and all is compared again. Prints the tables; fails on a single "loads" that fails or "would
fail" that loads. SCANKIT_AUDIT_ENV names a venv to use instead of making one; it is changed during the run and put back."""
import os
import shutil
from pathlib import Path

import pytest

from environment import shared_library
from fixtures import HERE, run, shell, site_of, suffix_of
from program import run_program

BROKEN_MODULE = """
#ifdef OLD_TORCH
extern void _ZN3c105ErrorC1ENS_14SourceLocationESs(void);
#define MISSING _ZN3c105ErrorC1ENS_14SourceLocationESs
#else
extern void PyOld_Gone(void);
#define MISSING PyOld_Gone
#endif
void* PyInit_broken(void) { MISSING(); return 0; }
"""


@pytest.fixture
def site(work):
    """site-packages of that environment; what a test changes there is put back."""
    site = site_of(python())
    yield site
    put_back(site)


def put_back(site):
    for away in site.rglob("*.away"):
        file = away.with_name(away.name.removesuffix(".away"))
        file.unlink(missing_ok=True)
        away.rename(file)
    shutil.rmtree(site / "scankit_broken", ignore_errors=True)


def python():
    folder = os.environ.get("SCANKIT_AUDIT_ENV") or shell("many_packages", file="doctor/tests/e2e/packages.sh")
    return Path(folder) / "bin/python"


def truth(*words):
    """audit_truth.py, by the interpreter of that environment."""
    return run(python(), HERE / "audit_truth.py", *words, timeout=5000)


def compare(scankit, name):
    """Audits, imports, prints the table; no answer may be wrong."""
    result = scankit.doctor("--all", "--no-import", "--python", python(), timeout=1000)
    assert result.status != 2, result
    Path(f"{name}.json").write_text(result.out)
    truth(f"{name}.json", f"{name}.truth")
    print(f"{name}:\n{truth('--table', f'{name}.truth')}")
    wrong = truth("--wrong", f"{name}.truth")
    assert not wrong.strip(), wrong


def break_files(site):
    """A library that the wheel brought is lost, one is of another build, a file is cut, one is empty."""
    def away(pattern):
        file = sorted(file for file in site.glob(pattern) if file.suffix != ".away")[0]
        return file, file.rename(f"{file}.away")
    away("pillow.libs/libopenjp2*")
    away("scipy.libs/libgfortran*")
    file, whole = away("h5py/_errors.*.so")
    file.write_bytes(whole.read_bytes()[:20000])
    away("lxml/etree.*.so")[0].touch()


def add_broken_package(site):
    """One extension needs a function of an old Python, one an old torch's. What a package's own __init__ loads by ctypes is
    found then, and only then."""
    package = site / "scankit_broken"
    suffix = suffix_of(python())
    for folder in (package, package / "a", package / "b", package / "c"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    shared_library(package / f"a/broken{suffix}", BROKEN_MODULE)
    shared_library(package / f"b/broken{suffix}", BROKEN_MODULE, None, "-DOLD_TORCH", "-Wl,--no-as-needed", f"-L{site}/torch/lib", "-lc10")
    helper = package / "libs/libscankit_helper.so"
    shared_library(helper, "int helper(void) { return 1; }\n", "libscankit_helper.so")
    shared_library(package / f"c/broken{suffix}", "int helper(void); void* PyInit_broken(void) { helper(); return 0; }\n", None, helper)
    (package / "c/__init__.py").write_text(
        'import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), "..", "libs", "libscankit_helper.so"))\n')


def names_bound_by_the_loader(build, site):
    """Every name that the packages of that environment bind, against the loader."""
    packages = ("torch, torchvision, scipy.linalg, scipy.sparse.linalg, pandas, pyarrow, sklearn, cv2, PIL.Image, h5py, xgboost, lightgbm, "
                "matplotlib.pyplot, lxml.etree, grpc")
    result = run_program(build / "doctor/probes/scankit_loader_test", "--gtest_filter=*WhatTheCallerNames", timeout=3000, variables={
        "SCANKIT_LOADER_PYTHON": python(), "SCANKIT_LOADER_GLOBAL": f"{site}/torch/lib/libtorch_global_deps.so",
        "SCANKIT_LOADER_CODE": f"import {packages}", "SCANKIT_TEST_PYTHON": python()})
    print(result.out)
    result.ends(0)


@pytest.mark.ctest(labels="matrix;large", timeout=5400, processors=2)
def test_audit_truth(scankit, site, build):
    compare(scankit, "healthy")
    break_files(site)
    add_broken_package(site)
    compare(scankit, "broken")
    failing = int(truth("--count", "would-fail", "fails", "broken.truth"))
    assert failing >= 6, f"only {failing} of the broken extensions fail and are said to"
    put_back(site)
    names_bound_by_the_loader(build, site)
