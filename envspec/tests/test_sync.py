# SPDX-License-Identifier: Apache-2.0
"""Environments brought to their lock, by uv and by pip: what is changed, refused, undone, and shown where nothing differs."""
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from creating import pip_wheel
from fixtures import run, site_of
from program import run_program
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.sync", labels="matrix;e2e", timeout=600)


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_sync(create, installer):
    uv = installer == "uv"
    create("new", uv=True).ends(0)
    python = os.path.realpath("new") + "/bin/python"
    if not uv:  # an environment with a pip of its own
        run(create.installers / "python", "-m", "pip", "--python", python, "install", "-q", "--no-index", "--find-links",
            pip_wheel(), "pip")
        Path("new/pyvenv.cfg").write_text(re.sub(r"(?m)^uv = .*\n", "", text_of("new/pyvenv.cfg")))
    Path("new/.scankit/record.json").unlink()
    result = create.sync("new", uv=uv).ends(0, "matches the lock already")
    result.has_line("^passed: lock$").has_line("^nothing to check: doctor: ")
    create.project.env("check", "--record", "new").ends(0)
    planned = create.sync("new", "--dry-run", uv=uv).ends(0, "its packages have the locked versions and compiled files")
    assert "matches" not in planned.out, "nothing was proven"
    create.project.uv("pip", "install", "--python", python, "alpha==1.1").ends(0)
    create.project.uv("pip", "install", "--python", python, "--no-index", create.project.index.own / "delta-1.0-py3-none-any.whl").ends(0)
    create.sync("new", "--dry-run", uv=uv).ends(0, "install: alpha==1.0")
    assert create.sync("new", "--dry-run", "--json", uv=uv).ends(0).json["state"] == "planned"
    create.project.drift("--python", python).ends(7)
    for name in (python, "python"):  # the second is what a shell starts that has activated the environment
        variables = {**os.environ, "VIRTUAL_ENV": os.path.realpath("new")}
        sleeper = subprocess.Popen([name, "-c", "import time; time.sleep(60)"], executable=python, env=variables)
        try:
            create.sync("new", uv=uv).ends(2, f"is in use, and nothing was changed: process {sleeper.pid} (python)")
        finally:
            sleeper.kill()
            sleeper.wait()
    create.project.index.stop()
    shutil.rmtree(create.project.work / "cache", ignore_errors=True)
    create.sync("new", uv=uv).ends(5)
    assert run(python, "-c", "import alpha, delta; print(alpha.version)") == "1.1\n", "a sync that failed has changed something"
    create.project.index.serve()
    result = create.sync("new", uv=uv).ends(0, "remove: delta==1.0")
    create.project.drift("--python", python).ends(0)
    assert run(python, "-c", "import alpha; print(alpha.version)") == "1.0\n"
    assert run_program(python, "-c", "import delta").status
    assert f"undo: scankit restore --python {python}" in result.out
    create.project.scankit("restore", "--python", python).ends(0, "env sync scankit.lock")
    assert run(python, "-c", "import alpha, delta; print(alpha.version)") == "1.1\n"


@pytest.mark.ctest(labels="ci;e2e")
def test_shows_it(create):
    """What is in the lock already is proven all the same, and what no package brings back is named."""
    create("new").ends(0)
    site = site_of(os.path.abspath("new/bin/python"))
    stray = site / "stray.abi3.so"
    shutil.copy(site / "beta/_c.abi3.so", stray)
    create.sync("new").ends(2, "1 compiled file is not as locked and belongs to no package: stray.abi3.so")
    stray.unlink()
    changed = (site / "beta/_c.abi3.so").read_bytes() + b"x"
    (site / "beta/_c.abi3.so").unlink()  # it may be a second name of a file in uv's cache
    (site / "beta/_c.abi3.so").write_bytes(changed)
    create.sync("new").ends(0, "install: beta==2.0")
    create.project.env("check", "--record", "new").ends(0)
    # A record is of what the lock says, however an editor has ended its lines.
    Path("scankit.lock").write_bytes(Path("scankit.lock").read_bytes().replace(b"\n", b"\r\n"))
    create.project.env("check", "--record", "new").ends(0)


@pytest.mark.ctest(labels="ci;e2e")
def test_takes_no_option_from_a_package(create):
    """A package's own METADATA names it, and `pip uninstall --log=FILE` would write there."""
    create("new").ends(0)
    site = site_of(os.path.abspath("new/bin/python"))
    info = site / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: --log={os.path.abspath('written')}\nVersion: 1.0\n")
    (info / "RECORD").write_text("evil-1.0.dist-info/METADATA,,\nevil-1.0.dist-info/RECORD,,\n")
    for uv in (True, False):
        create.sync("new", uv=uv).ends(2, "which is not a package name, and nothing was changed")
    assert not os.path.exists("written")


def test_killed(create):
    """The environment is the old one or the locked one, and the next sync finishes it."""
    create("new").ends(0)
    python = os.path.abspath("new/bin/python")
    seed = int(os.environ.get("SCANKIT_SEED", time.time_ns() % 100000))
    print(f"SCANKIT_SEED={seed}")
    chance = random.Random(seed)
    for _ in range(4):
        create.project.uv("pip", "install", "--python", python, "alpha==1.1").ends(0)
        process = create.project.scankit.start("env", "sync", "new", variables=create.variables())
        time.sleep(chance.uniform(0.2, 2))
        process.kill()
        process.wait()
        time.sleep(0.5)  # what was killed has ended
        create.sync("new").ends(0)
        create.project.drift("--python", python).ends(0)
        run(python, "-c", "import alpha, beta, tool")
        create.project.env("check", "--record", "new").ends(0)
