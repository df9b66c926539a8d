# SPDX-License-Identifier: Apache-2.0
"""The torch flavor of all modules against the torch of the tests ("here") and against other releases, in environments made for
them from the index's wheels. Each prints one row of a table: torch, C++ standard, string ABI, seconds and peak memory of the
compiler, what validate said."""
import re
import shutil
from pathlib import Path

import pytest

from fixtures import REPOSITORY, run, shell, shell_or_skip, torch_of
from program import run_program

MODULES = ("selective_scan_cuda", "selective_scan_cuda_core", "selective_scan_cuda_oflex", "causal_conv1d_cuda")
MODULE_TESTS = ("selective_scan/binding_universal/module_test.py", "selective_scan/binding_universal/tensors_test.py",
                "selective_scan/binding_vmamba/modules_test.py", "causal_conv1d/binding_universal/module_test.py")

# A compiler that notes its own user time and peak memory: of the compilation of one file, not of linking.
MEASURED = """#!/usr/bin/env python3
import resource, subprocess, sys
status = subprocess.call(["g++"] + sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if "-c" in sys.argv:
    with open(__file__ + ".used", "w") as file:
        file.write(f"{used.ru_utime:.1f} s, {used.ru_maxrss / 1e6:.2f} GB")
sys.exit(status)
"""


def environment_of(environment, release):
    """With torch of that release."""
    if release == "here":
        return environment("tested")
    wheels = shell_or_skip("fx_far_torch", release)
    env = environment("bare")
    run(shell("fx_pip_python"), "-m", "pip", "--disable-pip-version-check", "-q", "--python", env.python, "install", "--no-index",
        "--no-compile", "--find-links", wheels, f"torch=={release}", "numpy<2")
    return env


def header_changes_rebuild(flavor, env, measured, made):
    """A header of this torch changes: the reason is told, and the second build replaces the first."""
    torch = torch_of(env.python)
    header = torch / "include/c10/core/Device.h"
    assert header.stat().st_nlink == 1, f"{header} is a link: other environments would change with it"
    before = made.read_bytes()
    header.write_text(header.read_text() + "// changed\n")
    flavor("selective_scan_cuda", CXX=measured).ends(0, "c10/core/Device.h has changed")
    assert made.read_bytes() != before, "the key of the build is part of the module, and it has not changed"


def other_release_is_refused(env, made):
    """Every name of another minor release may be there, so that only the module itself can tell."""
    version = torch_of(env.python) / "version.py"
    release = run(env.python, "-c", "import torch; print(torch.__version__)").strip()
    version.write_text(re.sub(r"(?m)^__version__ = .*", "__version__ = '2.99.0'", version.read_text()))
    result = run_program(env.python, "-c", "import torch, selective_scan_cuda", variables={"PYTHONPATH": made.parent})
    result.ends(1, f"was built for torch {release.partition('+')[0]}")


@pytest.mark.ctest(group="builder", labels="matrix;large", timeout=3600, fixtures="torch_env")
@pytest.mark.parametrize("release", ["here", "2.4.1", "2.15.0"])
def test_torch_flavor_far(scankit, environment, work, release):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    env = environment_of(environment, release)
    measured = work / "g++"
    measured.write_text(MEASURED)
    measured.chmod(0o755)

    def flavor(module, **variables):
        return scankit("build", "--flavor", "torch", "--module", module, "--python", env.python, "--arch", "compute_75",
                       "--cache-dir", work / "cache", "--out", f"{work / 'made'}/", variables={"CXX": None, **variables}, timeout=1500)

    for module in MODULES:
        flavor(module, CXX=measured).ends(0)
        if module == MODULES[0]:
            used = (work / "g++.used").read_text()
    made = work / f"made/{MODULES[0]}{env.suffix}"
    row = re.findall(r'"(?:c\+\+ standard|string abi)": "(.*)"', scankit("build", "--show-manifest", made).ends(0).out)

    installed = Path(shutil.copy(made, env.site))
    scankit.report("--python", env.python, "--module", MODULES[0]).ends(0)
    judged = scankit("validate", "--python", env.python, "--module", made, "--quick", "--no-timing", timeout=1500).ends(0)
    installed.unlink()
    for test in MODULE_TESTS:
        run(env.python, REPOSITORY / "kernels" / test, variables={"PYTHONPATH": work / "made", "PYTHONDONTWRITEBYTECODE": "1"})

    if release != "here":
        header_changes_rebuild(flavor, env, measured, made)
        other_release_is_refused(env, made)
    passed = re.search(r"(?m)^PASSED.*", judged.out)[0]
    print(f"| {release} | {' '.join(row)} | {used} | {passed} |")
    shutil.rmtree(work / "cache")
