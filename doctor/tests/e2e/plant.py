# SPDX-License-Identifier: Apache-2.0
"""plant.py FAULT WORK MODULES [WAY]: plants a fault in WORK/env and prints what it is as shell assignments (plant.sh);
healthy:NAME makes a healthy environment. Exit status 77 where it cannot be made here. Needs no pytest."""
import sys
from pathlib import Path
from unittest import SkipTest

from fault import Fault, Planted, load_faults, plant
from healthy import load_healthy, make_healthy


def main(name, work, modules, way=None):
    work = Path(work).resolve()
    if name.startswith("healthy:"):
        load_healthy()
        environment, wanted = make_healthy(name.removeprefix("healthy:"), work, modules)
        planted = Planted(name, environment, Fault("", statement=wanted.statement, variables=wanted.variables))
    else:
        load_faults()
        planted = plant(name, work, modules, way)
    print(planted.as_shell())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SkipTest as reason:
        print(f"SKIP: {reason}", file=sys.stderr)
        sys.exit(77)
