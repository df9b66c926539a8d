# SPDX-License-Identifier: Apache-2.0
"""What the tests of `env create` and `env sync` share: the commands with an installer chosen, and what they may leave."""
import json
import os
from pathlib import Path

from fixtures import host_python, run
from project import text_of

PYTHON = os.path.realpath(host_python())


class Create:
    """`scankit env create`, in the directory of the project."""

    def __init__(self, project):
        self.project, self.installers = project, project.installers

    def variables(self, uv=True):
        return {"PATH": f"{self.installers}:/usr/bin:/bin" if uv else "/usr/bin:/bin", "SHELL": "/bin/bash"}

    def __call__(self, folder, *words, uv=True, before=(), timeout=300):
        scankit = self.project.scankit.with_(before=before)
        return scankit("env", "create", folder, *self.python(words), *words, variables=self.variables(uv), timeout=timeout)

    @staticmethod
    def python(words):
        return [] if "--python" in words else ["--python", PYTHON]

    def sync(self, *words, uv=True):
        return self.project.env("sync", *words, variables=self.variables(uv), timeout=300)


def left_behind():
    """What is not the project's: directories of ours, and whatever is called `new`."""
    return sorted(str(path) for path in Path().iterdir() if path.name.startswith("scankit-create") or path.name.startswith("new"))


def made_at(folder):
    """Files below the folder that name a directory of ours."""
    return run("grep", "-rla", "scankit-create", folder, status=None).split()


def record_of(folder):
    return json.loads(text_of(Path(folder, ".scankit/record.json")))


def pip_wheel():
    """The directory of ensurepip's own wheel."""
    return run(PYTHON, "-c", "import ensurepip, os; print(os.path.join(os.path.dirname(ensurepip.__file__), '_bundled'))").strip()
