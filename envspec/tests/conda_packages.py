# SPDX-License-Identifier: Apache-2.0
"""A conda channel in a folder, as conda-build and conda-index write one: Python, pip, and small packages of each kind that contain
the path of their prefix: text, a compiled library, programs and byte code that conda makes."""
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

from creating import pip_wheel

# What conda-build compiles for, and conda puts the real prefix in place of: 255 bytes.
PLACEHOLDER = ("/opt/build/" + "placehold_" * 30)[:255]
LEFT_OUT = {"site-packages", "dist-packages", "test", "idlelib", "tkinter", "lib2to3", "turtledemo", "__pycache__"}
WHERE = '#include <stddef.h>\nstatic const char text[] = "%s/a:%s/b";\nconst char* where(void) { return text; }\n'


def where_library(output):
    """where() is "PREFIX/a:PREFIX/b"."""
    subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", "-o", output, "-"], input=WHERE % (PLACEHOLDER, PLACEHOLDER), text=True, check=True)
    return Path(output).read_bytes()


def info_of(name, version):
    """What makes it a package for Python, as conda packages have it."""
    folder = f"{name}-{version}.dist-info"
    files = {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(), f"{folder}/INSTALLER": b"conda\n"}
    files[f"{folder}/RECORD"] = b"".join(f"{path},,\n".encode() for path in [f"{name}.py", *files, f"{folder}/RECORD"])
    return files


class Channel:
    def __init__(self, folder, python):
        self.folder, self.python, self.packages = Path(folder), Path(python), {"linux-64": {}, "noarch": {}}
        asked = "import os, sys; print(os.path.dirname(os.__file__), '%d.%d.%d' % sys.version_info[:3])"
        stdlib, self.version = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
        self.stdlib, self.minor = Path(stdlib), self.version.rpartition(".")[0]
        self.site = f"lib/python{self.minor}/site-packages"

    def add(self, name, version, files, depends=(), noarch=False, entry_points=()):
        """In bin and in etc, the placeholder is text; in a library it is binary."""
        subdir = "noarch" if noarch else "linux-64"
        index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": list(depends), "subdir": subdir,
                 "arch": None if noarch else "x86_64", "platform": None if noarch else "linux", "timestamp": 1700000000000}
        paths = []
        for path, data in sorted(files.items()):
            entry = {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
            if PLACEHOLDER.encode() in data:
                entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "binary" if b"\0" in data else "text"}
            paths.append(entry)
        all_files = dict(files)
        if noarch:
            index["noarch"] = "python"
            link = {"noarch": {"type": "python", "entry_points": list(entry_points)}, "package_metadata_version": 1}
            all_files["info/link.json"] = json.dumps(link).encode()
        all_files["info/index.json"] = json.dumps(index).encode()
        all_files["info/paths.json"] = json.dumps({"paths": paths, "paths_version": 1}).encode()
        all_files["info/files"] = "\n".join(entry["_path"] for entry in paths).encode()
        prefixed = [entry for entry in paths if "file_mode" in entry]
        all_files["info/has_prefix"] = "".join(f"{PLACEHOLDER} {entry['file_mode']} {entry['_path']}\n" for entry in prefixed).encode()
        self.pack(subdir, f"{name}-{version}-0.tar.bz2", all_files, index)

    def pack(self, subdir, name, files, index):
        file = self.folder / subdir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(file, "w:bz2", compresslevel=1) as archive:
            for path, data in files.items():
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(data), 0o755 if path.startswith("bin/") else 0o644
                archive.addfile(member, io.BytesIO(data))
        data = file.read_bytes()
        self.packages[subdir][name] = index | {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        self.write()

    def write(self):
        for subdir, packages in self.packages.items():
            (self.folder / subdir).mkdir(parents=True, exist_ok=True)
            (self.folder / subdir / "repodata.json").write_text(json.dumps({"info": {"subdir": subdir}, "packages": packages, "packages.conda": {}}))

    def add_python(self):
        below = f"lib/python{self.minor}"
        files = {f"bin/python{self.minor}": self.python.read_bytes(), "bin/python": self.python.read_bytes(),
                 "bin/pydoc": f"#!{PLACEHOLDER}/bin/python\nimport pydoc\npydoc.cli()\n".encode(),
                 "etc/where.txt": f"prefix = {PLACEHOLDER}\n".encode(), "lib/libwhere.so": where_library(self.folder.with_suffix(".so"))}
        for path in sorted(self.stdlib.rglob("*")):
            relative = path.relative_to(self.stdlib)
            if path.is_file() and not path.is_symlink() and path.suffix != ".a" and not LEFT_OUT & set(relative.parts):
                files[f"{below}/{relative}"] = path.read_bytes()
        self.add("python", self.version, files)

    def add_pip(self):
        wheel = next(Path(pip_wheel()).glob("pip-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            files = {f"{self.site}/{name}": archive.read(name) for name in archive.namelist() if not name.endswith("/")}
        version = wheel.name.split("-")[1]
        files[f"{self.site}/pip-{version}.dist-info/INSTALLER"] = b"conda\n"
        files["bin/pip"] = f"#!{PLACEHOLDER}/bin/python\nfrom pip._internal.cli.main import main\nraise SystemExit(main())\n".encode()
        self.add("pip", version, files, ["python"])

    def add_zeta(self, version):
        """Of noarch Python: conda compiles it and makes its program."""
        files = {"site-packages/zeta.py": f"def main():\n    print('zeta {version}')\n".encode()}
        files |= {f"site-packages/{path}": data for path, data in info_of("zeta", version).items()}
        self.add("zeta", version, files, ["python"], noarch=True, entry_points=["zeta = zeta:main"])

    def add_native(self, library):
        """With a compiled module; linux-64."""
        files = {f"{self.site}/native.py": b"", f"{self.site}/_native.abi3.so": library}
        files |= {f"{self.site}/{path}": data for path, data in info_of("native", "1.0").items()}
        self.add("native", "1.0", files, ["python"])


def make_channel(folder, python, library):
    channel = Channel(folder, os.path.realpath(python))
    Path(folder).mkdir()
    channel.add_python()
    channel.add_pip()
    channel.add_zeta("1.0")
    channel.add_zeta("1.1")
    channel.add_native(library)
    return channel
