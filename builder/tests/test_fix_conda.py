# SPDX-License-Identifier: Apache-2.0
"""Repairs by conda, in a prefix of real conda packages (doctor/tests/e2e/conda.sh)."""
import os
import shutil
import time

import pytest

from environment import Environment
from fixtures import host_python, minor_of, shared_python, shell, shell_or_skip, site_of
from repairs import Repair, sha256, tree

NEW_TRITON = "what_came_with_three = 1\n"


def conda(function, *words):
    """A function of conda.sh, in the current directory, where it keeps its files."""
    return shell(function, *words, file="doctor/tests/e2e/conda.sh")


class Prefix(Repair):
    """A conda prefix and the channel that its packages are from."""

    def __init__(self, scankit, work):
        self.work, self.channel, self.folder = work, work / "channel", work / "prefix"
        self.below = f"lib/python{minor_of(host_python())}/site-packages"
        self.make()
        super().__init__(scankit, Environment(self.folder))

    def make(self):
        """torch is a conda package too, as far as conda goes: its files are those of the shared environment."""
        conda("conda_channel_of_demo", self.channel, host_python())
        self.add("pytorch", "2.11.0", {f"{self.below}/torch.pth": f"{site_of(shared_python())}\n"}, "python")
        self.add_python("triton", "2.1.0", "triton", "", "pytorch")
        self.add_python("mamba-ssm", "2.3.1", "mamba_ssm", "from triton import what_came_with_three\n", "triton")
        self.install("demo-ext", "pytorch", "triton", "mamba-ssm")
        conda("conda_program", "bin/conda", self.channel)

    def add(self, name, version, files, *depends):
        """A package of these files, by path, to the channel."""
        package = self.work / "package"
        shutil.rmtree(package, ignore_errors=True)
        package.mkdir()
        for path, text in files.items():
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_text(text)
        conda("conda_channel", "add", self.channel, name, version, package, *depends)

    def add_python(self, name, version, module, text, *depends):
        """A package with MODULE/__init__.py, and with its metadata."""
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        files = {f"{module}/__init__.py": text, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                 f"{info}/INSTALLER": "conda\n"}
        files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files)
        self.add(name, version, {f"{self.below}/{path}": text for path, text in files.items()}, *depends)

    def install(self, *words, prefix=None):
        conda("conda_channel", "install", self.channel, prefix or self.folder, *words)

    def whole(self):
        return tree(self.folder, ("__pycache__", ".scankit"), hashed=1 << 40)

    def version_of(self, name):
        [record] = (self.folder / "conda-meta").glob(f"{name}-[0-9]*.json")
        return record.name.removeprefix(f"{name}-").partition("-")[0]

    def repair(self, module, *words):
        return self.fix("--arch", "compute_75", "--module", module, *words)


@pytest.fixture
def prefix(scankit, work, monkeypatch):
    if not shutil.which("patchelf"):
        pytest.skip("no patchelf")
    shell_or_skip("fx_installers")
    for name in ("CONDA_EXE", "MAMBA_EXE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("RATTLER_CACHE_DIR", work / "packages"), ("PATH", f"{work / 'bin'}:{os.environ['PATH']}"),
                        ("XDG_CACHE_HOME", os.environ.get("SCANKIT_FIX_CACHE") or work / "cache")):
        monkeypatch.setenv(name, str(value))
    yield Prefix(scankit, work)
    for name in ("prefix", "prefix.other", "packages", "channel", "files", "package", "cache"):
        shutil.rmtree(work / name, ignore_errors=True)


def reinstalled(prefix, work):
    file = prefix.folder / prefix.below / "demo_ext/core.abi3.so"
    cut = file.read_bytes()[:3000]
    file.unlink()  # conda's hard link leads to its cache
    file.write_bytes(cut)
    cached = next((work / "packages").rglob("core.abi3.so"))
    in_cache, before = sha256(cached), prefix.whole()
    command = f"{work}/bin/conda install --yes --prefix {prefix.folder} --force-reinstall --no-deps demo-ext=1.0"
    prefix.repair("demo_ext.core", "--dry-run").ends(0, command)
    prefix.repair("demo_ext.core", "--yes").ends(0)
    prefix.runs("import demo_ext.core as c; assert c.answer == 42")
    assert sha256(cached) == in_cache, "conda's cache has other bytes"
    prefix.restore().ends(0)
    assert prefix.whole() == before, "the broken file and conda's records are not back"
    assert sha256(cached) == in_cache, "conda's cache has other bytes"


def torch_is_held(prefix, work):
    """The triton that torch pins, of a channel whose build of it wants another torch: conda is told to hold what is there."""
    prefix.add_python("triton", "3.6.0", "triton", NEW_TRITON, "pytorch 2.12.*")
    prefix.add("pytorch", "2.12.0", {}, "python")
    before = prefix.whole()
    prefix.repair("mamba_ssm", "--dry-run").ends(0, "--freeze-installed triton=3.6.0")
    result = prefix.repair("mamba_ssm", "--yes").ends(5)
    assert "pytorch" in result.err, result
    assert prefix.whole() == before
    prefix.install("triton=3.6.0", prefix=work / "prefix.other")  # without that option it goes in
    assert (work / "prefix.other/conda-meta/pytorch-2.12.0-0.json").exists()


def upgraded(prefix):
    """A triton that mamba_ssm works with; a libdemo that nothing needs yet stays as it is."""
    prefix.add_python("triton", "3.6.0", "triton", NEW_TRITON, "pytorch", "libdemo >=2")
    prefix.add("libdemo", "2.2", {"lib/other": "\n"})
    before = prefix.whole()
    prefix.repair("mamba_ssm", "--yes").ends(0)
    prefix.runs("import mamba_ssm")
    assert [prefix.version_of(name) for name in ("triton", "pytorch", "libdemo")] == ["3.6.0", "2.11.0", "2.1"]
    prefix.restore().ends(0)
    assert prefix.whole() == before, "conda's records are not back"
    prefix.install("--freeze-installed", "triton=3.6.0")  # conda itself goes on from there
    prefix.runs("import mamba_ssm")
    prefix.install("--freeze-installed", "triton=2.1.0")


def killed(prefix, work):
    """After conda has changed the prefix."""
    before = prefix.whole()
    program = work / "bin/conda"
    *lines, last = program.read_text().splitlines()
    program.write_text("\n".join([*lines, last.removeprefix("exec "), f"touch '{work}/installed'; sleep 60"]) + "\n")
    fixer = prefix.scankit.start("fix", "--python", prefix.python, "--arch", "compute_75", "--module", "mamba_ssm", "--yes")
    while not (work / "installed").exists() and fixer.poll() is None:
        time.sleep(0.01)
    assert prefix.version_of("triton") == "3.6.0", "conda had not done its work"
    assert fixer.poll() is None, "it ended by itself"
    fixer.kill()
    fixer.wait()
    for _ in range(5):
        result = prefix.restore()
        if result.status == 0:
            break
        time.sleep(1)
    result.ends(0)
    assert prefix.whole() == before


@pytest.mark.ctest(group="fix", labels="matrix;e2e", timeout=900, fixtures="torch_env")
def test_conda(prefix, work):
    """One prefix for all: to make it takes longer than they do."""
    reinstalled(prefix, work)
    torch_is_held(prefix, work)
    upgraded(prefix)
    killed(prefix, work)
