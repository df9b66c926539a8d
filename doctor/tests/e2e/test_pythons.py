# SPDX-License-Identifier: Apache-2.0
"""For every CPython on this machine, bare and as a venv, what `scankit snapshot` reads from files is what the interpreter says
of itself: version, ABI tag, suffixes, prefix and sys.path, with .pth lines and a user site."""
import json
import os
import zlib
from pathlib import Path

import pytest

from fixtures import minor_of, run, site_of
from program import run_program

TRUTH = """
import json, os, platform, sys, sysconfig
try:
    import importlib.machinery
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
except ImportError:
    suffixes = []
path = []
for entry in sys.path[1:]:
    entry = os.path.abspath(entry)
    if os.path.exists(entry) and os.path.realpath(entry) not in path:
        path.append(os.path.realpath(entry))
print(json.dumps({
    "version": platform.python_version(),
    "soabi": sysconfig.get_config_var("SOABI"),
    "extension_suffixes": suffixes,
    "prefix": os.path.realpath(sys.prefix),
    "sys_path": path,
}))
"""


def read_by_scankit(scankit, python, home):
    facts = scankit.snapshot("--python", python, variables={"HOME": home})["python"]["value"]
    # realpath, not the text: a venv's lib64 is a link, and Pythons differ in when they resolve it.
    path = dict.fromkeys(os.path.realpath(one["path"]) for one in facts["sys_path"] if one["exists"] and one["origin"] != "cwd")
    return {**{key: facts.get(key) for key in ("version", "soabi", "extension_suffixes")}, "prefix": os.path.realpath(facts["prefix"]),
            "sys_path": list(path)}


def candidates():
    """The Pythons of this machine from 3.8 on."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for python in [Path("/usr/bin/python3"), *sorted(root.glob("versions/3.*/bin/python"))]:
        if os.access(python, os.X_OK) and run_program(python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))").status == 0:
            yield python


def test_pythons(scankit, work):
    home = work / "home"
    for folder in (home, work / "by-pth", work / "by-user-pth"):
        folder.mkdir()
    compared = 0

    def compare(name, python):
        nonlocal compared
        said = run_program(python, "-", stdin=TRUTH.encode(), variables={"HOME": home}).ends(0)
        assert read_by_scankit(scankit, python, home) == json.loads(said.out), f"{name} ({python}): the files say otherwise"
        compared += 1
        print(f"{name}: {said.json['version']}, {len(said.json['sys_path'])} folders")

    for python in candidates():
        minor = minor_of(python)
        name = f"{minor}-{zlib.crc32(str(python).encode()) % 10000}"
        user_site = home / f".local/lib/python{minor}/site-packages"
        user_site.mkdir(parents=True, exist_ok=True)
        (user_site / "extra.pth").write_text(f"# comment\n{work}/by-user-pth\n\n/no/such/folder\n")
        compare(f"{name}-bare", python)
        venv = work / f"{name}-venv"
        if run_program(python, "-m", "venv", "--without-pip", venv).status:
            continue
        (site_of(venv / "bin/python") / "extra.pth").write_text(f"{work}/by-pth\nimport sys\n")
        compare(venv.name, venv / "bin/python")
        system = work / f"{name}-system-site"
        run(python, "-m", "venv", "--without-pip", "--system-site-packages", system)
        compare(system.name, system / "bin/python")
    if not compared:
        pytest.skip("no CPython here")
