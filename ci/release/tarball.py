# SPDX-License-Identifier: Apache-2.0
"""A tar.gz whose bytes depend on nothing but its files:  tarball.py ROOT FILE PREFIX DOCUMENT...

What is below ROOT, and the documents, become PREFIX/... in the archive, sorted, of owner 0, with SOURCE_DATE_EPOCH as time.
"""
import gzip
import io
import os
import sys
import tarfile


def files_below(root):
    """Paths relative to root, sorted by their text, which does not depend on the file system or the language."""
    return sorted(os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)


def add(archive, name, data, mode, epoch):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, epoch  # uid, gid and their names are 0 and empty already
    archive.addfile(info, io.BytesIO(data))


def write(root, path, prefix, documents):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    entries = [(name, os.path.join(root, name)) for name in files_below(root)]
    entries += [(os.path.basename(document), document) for document in documents]
    # No name of the file in gzip's head, and the time that all files have.
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, source in sorted(entries):
            with open(source, "rb") as file:
                add(archive, prefix + "/" + name, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644, epoch)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
