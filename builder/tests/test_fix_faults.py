# SPDX-License-Identifier: Apache-2.0
"""Each repair by a real environment that is really broken: one of the doctor's faults (doctor/tests/e2e/faults_*.py) is planted,
repaired by `scankit fix`, held to the real interpreter, and taken back, byte by byte."""
import re

import pytest

from fixtures import CACHE, shell_or_skip
from program import run_program
from repairs import Repair

pytestmark = pytest.mark.ctest(group="fix", labels="matrix;e2e", timeout=900, fixtures="torch_env;modules")
# Repairs that change torch's own files, or the libraries beside them.
CHANGES_TORCH = r"(torch|cuda_wheels|compound_torch|ld_library_path)_"


@pytest.fixture
def planted(fault, repair, scankit, monkeypatch):  # `repair` for its cache
    """planted(FAULT): the environment, whose fix() starts where its user does, with the variables that break it."""
    wheels = shell_or_skip("fx_wheels")

    def planted(name):
        monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {CACHE / 'packages'}")
        one = fault(name, "plain" if re.match(CHANGES_TORCH, name) else "pth")
        if one.helps_itself():
            pytest.skip(one.fault.may_work)
        here = Repair(scankit, one.environment)
        here.planted = one
        return here
    return planted


def fix(here, *words):
    return here.fix("--arch", "compute_75", *words, variables=here.planted.fault.variables, cwd=here.planted.starts_in)


def as_its_user(here):
    """The import, in a shell that activates the environment."""
    return run_program("bash", "-c", '. "$1/bin/activate" && python -c "$2"', "-", here.env.folder, here.planted.fault.statement,
                       variables={**here.planted.fault.variables, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=here.planted.starts_in, timeout=300)


def repaired(here):
    """Broken, planned, repaired; returns what was there before."""
    assert as_its_user(here).status, "the fault does not break the import"
    before = here.everything()
    print(fix(here, "--dry-run").ends(0))
    assert here.everything() == before, "a dry run changes something"
    return before


def taken_back(here, before):
    result = here.restore()
    if result.status and "outside the environment" in result.text:
        # A file of a directory of PYTHONPATH goes back only where that is agreed to.
        assert "Nothing was changed. To run the plan: add --yes" in result.text, result
        result = here.restore("--yes")
    result.ends(0)
    assert here.everything() == before, "not byte by byte"
    here.restore().ends(0)


def repaired_and_taken_back(here):
    before = repaired(here)
    fix(here, "--yes").ends(0)
    as_its_user(here).ends(0)
    taken_back(here, before)


@pytest.mark.ctest(labels="ci;e2e", timeout=300)
def test_several_copies_pythonpath(planted):
    repaired_and_taken_back(planted("several_copies_pythonpath"))


@pytest.mark.parametrize("name", ["corrupt_binary_html", "compound_two_modules", "torch_version_mismatch",
                                  "ld_library_path_shadow_libstdcxx", "ld_library_path_shadow_nvjitlink", "cuda_wheels_mismatch_nccl"])
def test_fix(planted, name):
    repaired_and_taken_back(planted(name))


@pytest.mark.ctest(labels="matrix;large;e2e")  # torch's CUDA wheels
def test_torch_incomplete_own_library(planted):
    repaired_and_taken_back(planted("torch_incomplete_own_library"))


def test_python_abi_tag_mismatch(planted):
    """Of two repairs that have nothing to do with each other one may fail: mamba-ssm 2.3.1 does not import beside every
    transformers that the index has on this day. Then the fix ends with 6, and what did work stays."""
    here = planted("python_abi_tag_mismatch")
    before = repaired(here)
    result = fix(here, "--yes")
    if result.status == 0:
        here.runs("from mamba_ssm import Mamba")
    else:
        result.ends(6, "repaired: `import selective_scan_cuda` works")
        result.ends(6, "still wrong, and unchanged: `import mamba_ssm` fails")
        assert not (here.site / "transformers").exists(), "something of it stays"
    as_its_user(here).ends(0)
    taken_back(here, before)
