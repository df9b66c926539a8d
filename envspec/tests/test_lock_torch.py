# SPDX-License-Identifier: Apache-2.0
"""The environment that all this is for: a real torch and a selective_scan_cuda of ours built for sm_90. Spec and lock of it, the
manifest of the kernels in the lock, and environments rebuilt from each export that are the same. 5 GB and 6 minutes."""
import re
import shutil
from pathlib import Path

import pytest

from fixtures import TORCH, run, shell, shell_or_skip, site_of
from project import sha256, text_of

COMPUTES = """
import torch, selective_scan_cuda
u = torch.ones(1, 2, 4)
a = -torch.ones(2, 3)
b = torch.ones(1, 1, 3, 4)
assert torch.isfinite(selective_scan_cuda.fwd(u, u, a, b, b, None, None, None, False)[0]).all()
"""


@pytest.fixture
def wheels():
    """Of torch. Before `bare_project`: the download needs the caller's index."""
    return Path(shell_or_skip("fx_wheels"))


@pytest.fixture
def project(wheels, bare_project, scankit):
    """With torch, and the module for the GPUs of a spec, as an image is built on a machine without a GPU."""
    requirements = shell("fx_torch_requirements").split()
    for wheel in wheels.glob("*.whl"):
        (bare_project.index.served / wheel.name).symlink_to(wheel)
    bare_project.index.stop()
    bare_project.index.serve()
    bare_project.make_environment("env")
    bare_project.uv("pip", "install", "--python", bare_project.python, "--no-deps", *requirements, timeout=900).ends(0)
    Path("cluster.yaml").write_text("schema: 1\ngpus: [sm_90]\n")
    scankit("fix", "--python", bare_project.python, "--module", "selective_scan_cuda", "--for", "cluster.yaml", "--yes",
            timeout=900).ends(0, "sm_90")
    return bare_project


@pytest.mark.ctest(group="envspec", labels="matrix;large;e2e", timeout=1800)
def test_lock_torch(project, wheels, scankit):
    module = project.site / "selective_scan_cuda.abi3.so"
    assert module.stat().st_size
    project.env("init", "--python", project.python).ends(0)
    described = re.search(r"(?m)^  selective_scan_cuda:\n(?:    .*\n)*", text_of("scankit.yaml"))
    assert described and "code: [sm_90" in described[0], text_of("scankit.yaml")
    project.lock(timeout=900).ends(0)
    assert not [one["name"] for one in project.locked["distributions"] if not one["artifact"]], "without the hash of its wheel"
    [wheel] = wheels.glob(f"torch-{TORCH}-*.whl")
    assert project.artifact("torch") == sha256(wheel)
    manifest_is_that_of(module, project.locked)
    scankit("build", "--show-manifest", module).ends(0)
    project.env("check", "--python", project.python, "--fail-on", "note").ends(0)
    for form, out in (("requirements", "requirements.txt"), ("pylock", "pylock.toml")):
        project.export(form, out).ends(0)
    assert list(Path("scankit-wheels").glob("scankit_selective_scan_cuda-*.whl")), "our module does not go along as a wheel"
    for way in ("uv", "pylock", "pip"):
        python = project.new_python(way)
        project.rebuild(way, python).ends(0)
        project.env("check", "--python", python, "--fail-on", "note").ends(0)
        assert (site_of(python) / module.name).read_bytes() == module.read_bytes(), f"{way} installs another module"
        run(python, "-c", COMPUTES)
        shutil.rmtree(python.parents[1])


def manifest_is_that_of(module, lock):
    """What the lock says of our module, and of the libraries."""
    [locked] = lock["modules"]
    assert locked["module"] == "selective_scan_cuda" and locked["path"] == module.name, locked
    assert locked["distribution"] == "scankit-selective-scan-cuda", locked
    manifest = locked["manifest"]
    images = manifest["images"]
    assert manifest["module"] == locked["module"] and manifest["toolchain"]["sha256"], manifest.keys()
    assert images and all(one["kind"] == "cubin" and len(one["sha256"]) == 64 for one in images), images[:3]
    [library] = [one for one in lock["libraries"] if one["path"] == module.name]
    assert library["sha256"] == sha256(module) and "sm_90" in library["code"], library
    assert len(lock["libraries"]) > 30
    assert any(one["path"] == "torch/lib/libtorch_cpu.so" and one["string_abi"] for one in lock["libraries"])
