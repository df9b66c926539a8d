# SPDX-License-Identifier: Apache-2.0
"""conda as conda-lock brings it along: a copy below a package of its own, some of whose imports still say `conda`. fx_conda makes
a program of this (ci/fixture_tools.sh)."""
import importlib
import importlib.abc
import importlib.util
import os
import sys
import types

HOME = "conda_lock._vendor."


class UnderItsOwnName(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name.split(".")[0] == "conda" else None

    def create_module(self, spec):
        module = importlib.import_module(HOME + spec.name)
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        """It is loaded; the import system has put the other name's spec into it."""
        module.__spec__ = self.specs[module.__spec__.name]

    specs = {}


# Without conda-lock itself, which imports much more.
package = types.ModuleType("conda_lock")
package.__path__ = list(importlib.util.find_spec("conda_lock").submodule_search_locations)
sys.modules["conda_lock"] = package
sys.meta_path.insert(0, UnderItsOwnName())

if __name__ == "__main__":  # conda starts processes that load this file again
    os.environ.setdefault("CONDA_SOLVER", "classic")
    sys.argv[0] = "conda"
    from conda_lock._vendor.conda.cli.main import main
    sys.exit(main())
