# SPDX-License-Identifier: Apache-2.0
"""The lock of what scankit's own repair brings, by the real index: mamba-ssm, of which there are only sources, and tokenizers,
whose WHEEL has several tags in one line. Each export can be made, and installs the same files."""
import re
import shutil
from pathlib import Path

import pytest

from fixtures import shell_or_skip, site_of
from program import run_program
from project import Project, text_of

pytestmark = pytest.mark.ctest(group="envspec", labels="matrix;e2e", timeout=600)


@pytest.fixture
def project(scankit, installers, work, monkeypatch):
    """The current directory, with both packages installed by pip, from the caller's index."""
    mamba = Path(shell_or_skip("fx_python_wheel", "mamba-ssm", "2.3.2.post1"))
    monkeypatch.delenv("PIP_REQUIRE_HASHES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    project = Project(scankit, work, installers, None)
    project.make_environment("env", pip=True)
    if run_program(project.python, "-m", "pip", "install", "-q", "--no-deps", "tokenizers==0.20.3", timeout=300).status:
        pytest.skip("the index cannot be reached")
    # As pip leaves it behind that has built it from the index's archive: no direct_url.json.
    project.pip("install", "-q", "--no-deps", "--no-index", "--find-links", mamba.parent, "mamba-ssm==2.3.2.post1")
    yield project
    project.remove_environments()


def lock_and_export(project, way):
    """WAY.lock, and every export in the directory WAY."""
    project.lock(uv_on_path=way == "uv").ends(0)
    tokenizers, mamba = project.distribution("tokenizers"), project.distribution("mamba-ssm")
    assert tokenizers["source"] == "index" and tokenizers["artifact"]["file"].startswith("tokenizers-0.20.3-cp"), tokenizers
    assert mamba["source"] == "here" and mamba["artifact"]["file"].endswith(".whl"), mamba
    for form in ("requirements", "pylock", "dockerfile", "conda"):
        project.export(form, f"{way}/{form}").ends(0)
    shutil.move("scankit.lock", f"{way}.lock")


def files_of(folder):
    """The bytes of every file below it, but for Python's cache."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_lock_sources(project, work):
    tags = text_of(project.site / "tokenizers-0.20.3.dist-info/WHEEL")
    if not re.search(r"(?m)^Tag: [^ ]*\.", tags):
        print("note: this wheel has no line of several tags")
    lock_and_export(project, "pip")
    lock_and_export(project, "uv")
    hashes = [sum("sha256" in re.sub(r' *"url".*', "", line) for line in text_of(f"{way}.lock").splitlines()) for way in ("pip", "uv")]
    assert hashes[0] == hashes[1], f"pip and uv lock differently: {hashes}"

    again = project.new_python("again", pip=True)
    run_program(again, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", "pip/requirements", timeout=300).ends(0)
    for package in ("mamba_ssm", "tokenizers"):
        assert files_of(project.site / package) == files_of(site_of(again) / package), f"pip installs another {package}"
    third = project.new_python("third")
    shutil.copy("uv/pylock", "uv/pylock.toml")
    project.uv("pip", "sync", "--preview", "--python", third, "uv/pylock.toml", timeout=300).ends(0)
    assert files_of(project.site / "mamba_ssm") == files_of(site_of(third) / "mamba_ssm"), "uv installs another mamba_ssm"
