# SPDX-License-Identifier: Apache-2.0
"""Source archives of packages that the tests make up."""
import tarfile


def source_archive(index, name, version, code="", requires="", files=None):
    """INDEX/NAME-VERSION.tar.gz: one package, with `code` in its setup.py. `files`: what is in it instead, by path."""
    package = name.replace("-", "_")
    folder = index.parent / "make" / f"{name}-{version}"
    files = files or {
        f"{package}/__init__.py": "",
        "setup.py": f"import subprocess, sys\nfrom setuptools import setup\n{code}\n"
                    f'setup(name="{name}", version="{version}", packages=["{package}"], install_requires=[{requires}])\n'}
    for path, text in {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    index.mkdir(exist_ok=True)
    with tarfile.open(index / f"{folder.name}.tar.gz", "w:gz") as archive:
        archive.add(folder, folder.name)
    return index / f"{folder.name}.tar.gz"
