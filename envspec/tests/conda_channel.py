# SPDX-License-Identifier: Apache-2.0
"""A conda channel of two packages, and environments by py-rattler, conda's rules without conda.

conda_channel.py make CHANNEL PYTHON: the channel, with the Python of that interpreter in it.
conda_channel.py create PREFIX URL SPEC...: an environment.
conda_channel.py rebuild PREFIX URL FILE: one by environment.yml; prints the lines of its pip part.
conda_channel.py pixi PREFIX URL FILE: one by pixi.toml; prints the command of its task.
"""
import asyncio
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib

import rattler
import yaml
from rattler.index import index_fs

PLATFORMS = ["linux-64", "noarch"]


def package(folder, name, version, build, files, depends=()):
    index = {"name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends), "subdir": "linux-64",
             "arch": "x86_64", "platform": "linux", "timestamp": 1700000000000}
    paths = [{"_path": inner, "path_type": "hardlink"} for inner in files]
    meta = {"info/index.json": index, "info/paths.json": {"paths": paths, "paths_version": 1}, "info/about.json": {}}
    (folder / "linux-64").mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "linux-64" / ("%s-%s-%s.tar.bz2" % (name, version, build)), "w:bz2", compresslevel=1) as archive:
        for inner, value in meta.items():
            data = json.dumps(value).encode()
            entry = tarfile.TarInfo(inner)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for inner, value in files.items():
            if isinstance(value, pathlib.Path):
                archive.add(value.resolve(), inner, recursive=False)
            else:
                entry = tarfile.TarInfo(inner)
                entry.size, entry.mode = len(value), 0o644
                archive.addfile(entry, io.BytesIO(value))


def make(channel, python):
    asked = "import os, sys, platform; print(os.path.realpath(sys.executable), os.path.dirname(os.__file__), platform.python_version())"
    program, stdlib, version = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    minor = version.rsplit(".", 1)[0]
    files = {"bin/python" + minor: pathlib.Path(program), "bin/python": pathlib.Path(program)}
    left_out = re.compile(r"(^|/)(site-packages|test|tests|idlelib|tkinter|ensurepip|lib2to3|__pycache__|config-[^/]*)/")
    for path in sorted(pathlib.Path(stdlib).rglob("*")):
        inner = path.relative_to(stdlib).as_posix()
        if path.is_file() and not left_out.search(inner + "/") and not path.is_symlink():
            files["lib/python%s/%s" % (minor, inner)] = path
    package(channel, "python", version, "0_cpython", files)
    site = "lib/python%s/site-packages/" % minor
    package(channel, "zeta", "1.0", "py_0", {
        site + "zeta.py": b"",
        site + "zeta-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: zeta\nVersion: 1.0\n",
        site + "zeta-1.0.dist-info/INSTALLER": b"conda\n",
        site + "zeta-1.0.dist-info/RECORD": b"zeta.py,,\nzeta-1.0.dist-info/METADATA,,\nzeta-1.0.dist-info/INSTALLER,,\nzeta-1.0.dist-info/RECORD,,\n",
    }, ["python >=%s" % minor])
    asyncio.run(index_fs(channel))


async def create(prefix, channels, specs):
    records = await rattler.solve(channels, specs, platforms=PLATFORMS)
    await rattler.install(records, prefix, show_progress=False)
    return {record.name.normalized: record for record in records}


def rebuild(prefix, url, file):
    described = yaml.safe_load(pathlib.Path(file).read_text())
    assert set(described) == {"name", "channels", "dependencies"}, described
    channels = [name if "://" in name else url for name in described["channels"]]
    specs = [one for one in described["dependencies"] if isinstance(one, str)]
    by_pip = [one["pip"] for one in described["dependencies"] if isinstance(one, dict)]
    assert len(by_pip) == 1, described
    assert specs.pop() == "pip"  # which this channel does not have
    # name=version=build, as `conda env export` writes it; a strict reading wants name==version=build.
    parsed = [rattler.MatchSpec(one, strict=False) for one in specs]
    assert [str(one.build) for one in parsed] == ["0_cpython", "py_0"], parsed
    here = asyncio.run(create(prefix, channels, parsed))
    assert all(any(spec.matches(record) for record in here.values()) for spec in parsed), here
    print("\n".join(by_pip[0]))


def pixi(prefix, url, file):
    """As pixi reads its manifest: each dependency is a MatchSpec, whose hash the solver compares with the channel's."""
    described = tomllib.loads(pathlib.Path(file).read_text())
    assert set(described) == {"workspace", "dependencies", "system-requirements", "tasks"}, described
    workspace = described["workspace"]
    assert set(workspace) == {"name", "channels", "platforms"} and workspace["platforms"] == PLATFORMS[:1], workspace
    dependencies = described["dependencies"]
    assert dependencies.pop("pip") == "*"  # which this channel does not have
    specs = []
    for name, fields in dependencies.items():
        assert set(fields) == {"version", "build", "channel", "sha256"} and fields["channel"] in workspace["channels"], fields
        specs.append(rattler.MatchSpec("%s[%s]" % (name, ", ".join('%s="%s"' % pair for pair in fields.items() if pair[0] != "channel"))))
    here = asyncio.run(create(prefix, workspace["channels"], specs))
    assert all(here[name].sha256.hex() == fields["sha256"] for name, fields in dependencies.items()), here
    print(described["tasks"]["install"])


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "create":
        asyncio.run(create(sys.argv[2], [sys.argv[3]], sys.argv[4:]))
    elif sys.argv[1] == "pixi":
        pixi(*sys.argv[2:5])
    else:
        rebuild(*sys.argv[2:5])
    # rattler's threads may outlive the event loop, and crash an interpreter that takes itself apart under them.
    sys.stdout.flush()
    os._exit(0)
