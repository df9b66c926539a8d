# SPDX-License-Identifier: Apache-2.0
"""A conda channel in a folder, and an installer for it; py-rattler does both, so prefix and records are as conda clients write them.

make CHANNEL PYTHON FILES: packages `python` (of that real one), `libdemo` and `demo-ext` (of FILES/libdemo.so, FILES/demo.so)
add CHANNEL NAME VERSION FOLDER [DEPENDENCY...]: a package of what is in FOLDER, in place of one of that name and version
install CHANNEL PREFIX [--yes] [--force-reinstall] [--no-deps] [--freeze-installed] SPEC...: as conda's options
"""
import asyncio
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

LEFT_OUT = {"site-packages", "test", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo", "__pycache__"}


def tree(folder, below):
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        relative = path.relative_to(folder)
        if not LEFT_OUT & set(relative.parts) and path.is_file() and not path.is_symlink() and path.suffix != ".a":
            found[f"{below}/{relative}"] = path.read_bytes()
    return found


def package(channel, name, version, files, depends):
    """conda-build's layout: the files of the prefix, and info/ beside them."""
    folder = pathlib.Path(channel, "linux-64")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [{"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
             for path, data in sorted(files.items())]
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": depends, "arch": "x86_64",
             "platform": "linux", "subdir": "linux-64", "timestamp": 1700000000000}
    files = dict(files)
    files["info/index.json"] = json.dumps(index).encode()
    files["info/paths.json"] = json.dumps({"paths": paths, "paths_version": 1}).encode()
    files["info/files"] = "\n".join(entry["_path"] for entry in paths).encode()
    with tarfile.open(folder / f"{name}-{version}-0.tar.bz2", "w:bz2", compresslevel=1) as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.mode = 0o755 if path.startswith("bin/") else 0o644
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def make(channel, python, folder):
    folder = pathlib.Path(folder)
    series = "python%d.%d" % sys.version_info[:2]
    files = tree(pathlib.Path(python).parent.parent / "lib" / series, "lib/" + series)
    for extra in folder.glob("libpython*.so*"):
        files["lib/" + extra.name] = extra.read_bytes()
    files["bin/" + series] = files["bin/python"] = (folder / "python").read_bytes()
    version = "%d.%d.%d" % sys.version_info[:3]
    package(channel, "python", version, files, [])
    package(channel, "libdemo", "2.1", {"lib/libdemo.so.2": (folder / "libdemo.so").read_bytes()}, [])
    site = f"lib/{series}/site-packages"
    info = f"{site}/demo_ext-1.0.dist-info"
    package(channel, "demo-ext", "1.0", {
        f"{site}/demo_ext/__init__.py": b"from . import core\n",
        f"{site}/demo_ext/core.abi3.so": (folder / "demo.so").read_bytes(),
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: demo-ext\nVersion: 1.0\n",
        f"{info}/INSTALLER": b"conda\n",
        f"{info}/RECORD": b"demo_ext/__init__.py,,\ndemo_ext/core.abi3.so,,\ndemo_ext-1.0.dist-info/METADATA,,\n",
    }, ["python", "libdemo >=2"])
    from rattler.index import index_fs

    asyncio.run(index_fs(channel))


def add(channel, name, version, folder, *depends):
    folder = pathlib.Path(folder)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    package(channel, name, version, files, list(depends))
    from rattler.index import index_fs

    asyncio.run(index_fs(channel, force=True))


async def install(channel, prefix, specs, options):
    import rattler

    named = {spec.split("=")[0].split(" ")[0] for spec in specs}
    there = pathlib.Path(prefix, "conda-meta")
    known = [rattler.PrefixRecord.from_path(record) for record in sorted(there.glob("*.json"))]
    others = [record for record in known if record.name.source not in named]
    # What is there and was not named stays where it can be; frozen, it stays, or the solver finds no way.
    records = await rattler.solve([rattler.Channel("file://" + os.path.abspath(channel))],
                                  specs + [record.name.source for record in others],
                                  platforms=["linux-64"], virtual_packages=rattler.VirtualPackage.detect(),
                                  locked_packages=others, pinned_packages=others if "--freeze-installed" in options else [])
    ignored = {record.name.source for record in records} - named if "--no-deps" in options else None
    await rattler.install(records, prefix, installed_packages=known or None, ignored_packages=ignored,
                          reinstall_packages=named if "--force-reinstall" in options else None, show_progress=False)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:5])
    elif sys.argv[1] == "add":
        add(*sys.argv[2:])
    else:
        known = {word for word in sys.argv[4:] if word.startswith("--")}
        assert known <= {"--yes", "--force-reinstall", "--no-deps", "--freeze-installed"}, known
        asyncio.run(install(sys.argv[2], sys.argv[3], [word for word in sys.argv[4:] if word not in known], known))
    # rattler's threads outlive the interpreter and abort it now and then (PyGILState_Release while finalizing).
    sys.stdout.flush()
    os._exit(0)
