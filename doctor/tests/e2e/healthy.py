# SPDX-License-Identifier: Apache-2.0
"""What a healthy environment is. healthy_*.py hold one function for each; test_healthy.py asks the doctor about them."""
import dataclasses
import importlib

from environment import MODULE, Environment
from fixtures import HERE

GOOD = f"import torch, {MODULE}"


@dataclasses.dataclass
class Healthy:
    # Python that must work there.
    statement: str = GOOD
    # The environment variables for it and for the doctor.
    variables: dict = dataclasses.field(default_factory=dict)
    # "empty" where nothing is wrong and nothing was there to be looked at.
    verdict: str = "healthy"


HEALTHY = {}


def healthy(*, files="pth", timeout=300, labels="ci;e2e"):
    """Registers a healthy environment under the function's name. `files`: how torch gets into it (Environment.make); the
    others are CTest's (ctest_list.py)."""
    del timeout, labels

    def register(function):
        assert function.__name__ not in HEALTHY, function.__name__
        HEALTHY[function.__name__] = (function, files)
        return function
    return register


def load_healthy():
    for file in sorted(HERE.glob("healthy_*.py")):
        importlib.import_module(file.stem)
    return HEALTHY


def make_healthy(name, work, modules):
    """WORK/env, and what the function says of it."""
    function, files = HEALTHY[name]
    environment = Environment.make(work / "env", files, modules)
    return environment, function(environment)
