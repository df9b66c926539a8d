# SPDX-License-Identifier: Apache-2.0
"""Small wheels for the tests of the lock.

alpha is pure and of the index, beta is compiled and of nobody's index, gamma is what an index never had.
"""
import base64
import hashlib
import os
import zipfile


def wheel(folder, name, version, tag, files, requires=()):
    info = "%s-%s.dist-info" % (name, version)
    files = dict(files)
    needs = "".join("Requires-Dist: %s\n" % need for need in requires)
    extras = {need.partition("extra == ")[2].strip("'") for need in requires if "extra == " in need}
    needs += "".join("Provides-Extra: %s\n" % extra for extra in sorted(extras))  # pip ignores an extra that is not listed
    files[info + "/METADATA"] = ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (name, version, needs)).encode()
    files[info + "/WHEEL"] = ("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    with zipfile.ZipFile(os.path.join(folder, "%s-%s-%s.whl" % (name, version, tag)), "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)


def make_wheels(folder, library):
    """FOLDER/served: what an index has; FOLDER/own: what it has not. `library` is beta's compiled part."""
    served, own = os.path.join(folder, "served"), os.path.join(folder, "own")
    for part in (served, own):
        os.makedirs(part, exist_ok=True)
    for version in ("1.0", "1.1"):
        wheel(served, "alpha", version, "py3-none-any", {"alpha.py": b"version = '%s'\n" % version.encode()})
    for name, version in (("gamma", "3.0"), ("delta", "1.0")):
        wheel(own, name, version, "py3-none-any", {name + ".py": b""})
    wheel(own, "beta", "2.0", "cp38-abi3-linux_x86_64", {"beta/__init__.py": b"", "beta/_c.abi3.so": library})
