# SPDX-License-Identifier: Apache-2.0
"""What a planted fault is. faults_*.py hold one function a fault; `@fault()` registers it under the function's name.

The function gets a fresh Environment, breaks it by the real mechanism, and returns a Fault: what the real interpreter then
says, and what the doctor must answer. test_faults.py holds both to it, test_printed.py runs the printed repair.
"""
import dataclasses
import importlib
import os
import shlex
import subprocess
from pathlib import Path

from environment import Environment
from fixtures import HERE

IMPORT = "import torch, selective_scan_cuda"


@dataclasses.dataclass
class Fault:
    # The cause that must be the root; several as "a|b", where either is right; "" where no error may be the root.
    root: str
    # A pattern that the interpreter's own message must match; "" where it has none (a crash).
    error: str = ""
    # Python that fails because of the fault.
    statement: str = IMPORT
    # Causes that must all be among the findings; by default the root.
    found: tuple = ()
    verdict: str = "broken"
    status: int = 1
    # What the interpreter's message by itself, as a log, must lead to ("a|b" again): by default the root; "none": no cause. None: not asked.
    log: str | None = ""
    # Only an observed import shows it; the files alone must then prove nothing.
    only_observed: bool = False
    # The environment variables, the extra arguments of the doctor and the current folder in which it is broken.
    variables: dict = dataclasses.field(default_factory=dict)
    options: list = dataclasses.field(default_factory=list)
    starts_in: Path | None = None
    # (file name, torch release): the doctor must say that this file was built for that release.
    built_for: tuple = ()
    # A pattern that a line of the text report must match.
    says: str = ""
    # Some torch helps itself out of this fault, and how. Where it does, the doctor must find nothing.
    may_work: str = ""


@dataclasses.dataclass
class Planter:
    plant: object  # Environment -> Fault
    files: str  # Environment.make's `way`
    files_printed: str


FAULTS = {}


def fault(*, matrix=False, timeout=300, files="pth", files_printed=None, printed="large"):
    """Registers a fault. `matrix`: the kind has another fault in every CI run, this one takes its turn. `timeout`: of
    fault.NAME, in seconds. `files`: how torch gets into the environment (Environment.make): "plain" where files of torch
    change, since the shared ones must not. `files_printed`: the same for printed.NAME where its repair changes torch.
    `printed`: "ci" or "matrix" where printed.NAME takes seconds. ctest_list.py reads these arguments from the source: literals only."""
    del matrix, timeout, printed

    def register(function):
        name = function.__name__
        assert name not in FAULTS, f"two faults are called {name}"
        FAULTS[name] = Planter(function, files, files_printed or files)
        return function
    return register


def load_faults():
    """All of them, by importing faults_*.py."""
    for file in sorted(HERE.glob("faults_*.py")):
        importlib.import_module(file.stem)
    return FAULTS


@dataclasses.dataclass
class Planted:
    """A fault in its environment."""
    name: str
    environment: Environment
    fault: Fault

    @property
    def starts_in(self):
        return self.fault.starts_in or self.environment.work

    @property
    def found(self):
        return self.fault.found or ((self.fault.root,) if self.fault.root else ())

    def fails(self, timeout=300):
        """Runs the statement as its user would. Returns its exit status (negative: a signal) and what it said."""
        command = [str(self.environment.python), "-c", self.fault.statement]
        done = subprocess.run(command, cwd=self.starts_in, text=True, errors="replace",
                              env={**os.environ, **self.fault.variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout

    def helps_itself(self):
        return bool(self.fault.may_work) and self.fails()[0] == 0

    def as_shell(self):
        """Assignments for shell scripts (plant.sh)."""
        variables = " ".join(f"{name}={value}" for name, value in self.fault.variables.items())
        values = {"env": self.environment.folder, "IMPORT": self.fault.statement, "ERROR": self.fault.error, "ROOT": self.fault.root,
                  "PREPARE": variables, "DOCTOR": " ".join(map(str, self.fault.options)), "STARTS_IN": self.starts_in}
        return "\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items())


def plant(name, work, modules, way=None):
    """Makes WORK/env and plants the fault in it."""
    planter = FAULTS[name]
    environment = Environment.make(Path(work) / "env", way or planter.files, modules)
    try:
        return Planted(name, environment, planter.plant(environment))
    except BaseException:
        environment.remove()
        raise
