# SPDX-License-Identifier: Apache-2.0
"""The wheel of a finished program:  wheel.py ROOT OUT ARCH

It holds what pip makes of the sources (pyproject.toml, ci/cmake/install.cmake) without compiling again: the program among
the scripts, what `fix` installs and what shells and man read below share, the Python wrapper of the kernels as a package.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

import metadata
from tarball import files_below

# The program is static (runs_anywhere.sh), so that pip on musl may install it too, where the doctor works. The modules
# need glibc, as does every torch that could load them.
TAGS = ("manylinux_2_17_{0}", "musllinux_1_1_{0}")


def place_in_wheel(name, data):
    """Where a file of the installed tree belongs, or None for one that the wheel has elsewhere."""
    if name.startswith("share/scankit/python/"):
        return name.removeprefix("share/scankit/python/")
    if name.startswith("bin/"):
        return data + "/scripts/" + name.removeprefix("bin/")
    return data + "/data/" + name


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def contents(root, arch):
    """(name, bytes, is executable) of everything but RECORD, in the order of the archive: the metadata last, as PEP 427 asks."""
    stem = "scankit-" + metadata.version()
    files = []
    for name in files_below(root):
        path = Path(root, name)
        files.append((place_in_wheel(name, stem + ".data"), path.read_bytes(), os.access(path, os.X_OK)))
    head = ["Wheel-Version: 1.0", "Generator: scankit-release", "Root-Is-Purelib: false"]
    head += ["Tag: py3-none-" + tag.format(arch) for tag in TAGS]
    info = stem + ".dist-info/"
    about = [(info + "METADATA", metadata.core_metadata().encode(), False),
             (info + "WHEEL", ("\n".join(head) + "\n").encode(), False),
             (info + "licenses/LICENSE", (metadata.SOURCES / "LICENSE").read_bytes(), False)]
    return sorted(files) + about, info + "RECORD"


def write(root, out, arch):
    files, record = contents(root, arch)
    rows = ["%s,%s,%d" % (name, digest(data), len(data)) for name, data, _ in files] + [record + ",,"]
    files.append((record, ("\n".join(rows) + "\n").encode(), False))
    # A zip file counts in steps of two seconds from 1980 on, and without a zone.
    stamp = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    path = Path(out, "scankit-%s-py3-none-%s.whl" % (metadata.version(), ".".join(tag.format(arch) for tag in TAGS)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, executable in files:
            entry = zipfile.ZipInfo(name, stamp)
            entry.create_system = 3  # Unix: pip reads the permissions above the low 16 bits
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


if __name__ == "__main__":
    write(*sys.argv[1:])
