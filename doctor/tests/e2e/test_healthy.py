# SPDX-License-Identifier: Apache-2.0
"""Environments in which nothing is wrong must be called healthy, by the observed import and by the files alone, without a
warning."""
import pytest

from fixtures import run
from healthy import load_healthy, make_healthy

HEALTHY = load_healthy()


@pytest.mark.ctest(group="healthy", fixtures="torch_env;modules")
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name, scankit, work, modules, request):
    environment, wanted = make_healthy(name, work, modules)
    request.addfinalizer(environment.remove)
    run(environment.python, "-c", wanted.statement, variables=wanted.variables)
    for words in ([], ["--no-import"]):
        result = scankit.doctor("--python", environment.python, *words, variables=wanted.variables)
        result.diagnosis(wanted.verdict)
        assert not result.findings(severity="warning"), f"a warning in a healthy environment: {result.summary}"
