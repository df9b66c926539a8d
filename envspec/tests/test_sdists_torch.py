# SPDX-License-Identifier: Apache-2.0
"""The same with a real torch: a C++ extension whose build imports torch, and the mamba-ssm that `scankit fix --package` installs.
Minutes, and 5 GB."""
import os
import shutil
from pathlib import Path

import pytest

from creating import Create, record_of
from fixtures import TORCH, TRITON, need_nvcc, run, shell, shell_or_skip, site_of
from lock_wheels import wheel
from project import sha256
from source_packages import build_tools, device_torch, serve, twice
from test_create_far import serve_what_torch_needs

# What mamba_ssm imports of the release before 5, with its own dependencies (doctor/tests/e2e/packages.sh).
TRANSFORMERS = ["transformers==4.57.6", "huggingface_hub==0.36.2", "tokenizers==0.22.2", "safetensors==0.8.0", "regex", "requests",
                "tqdm", "pyyaml", "urllib3", "idna", "certifi", "charset-normalizer"]
MAMBA = "2.2.5"

pytestmark = pytest.mark.ctest(group="envspec.sdists", labels="matrix;large;e2e", timeout=1800)


@pytest.fixture
def wheels():
    """Of torch, and of what mamba-ssm imports. Before `bare_project`: the download needs the caller's index."""
    build_tools()
    packages = shell_or_skip("fx_packages", TRITON, *TRANSFORMERS)
    files = [*Path(packages).glob("*.whl"), *Path(shell_or_skip("fx_wheels")).glob("*.whl")]
    return [file for file in files if file.name.split("-")[0] not in ("pip", "uv", "setuptools") or file.parent.name == "wheels"]


@pytest.fixture
def tools():
    """The wheel of setuptools."""
    return next(build_tools().glob("setuptools-75.8.0-*.whl"))


@pytest.fixture
def nvcc():
    """Before `project`, whose PATH is short."""
    return need_nvcc()


@pytest.fixture
def torch_wheels():
    return Path(shell_or_skip("fx_wheels"))


@pytest.fixture
def mamba():
    """Its source archive."""
    return Path(shell_or_skip("fx_sdist", "mamba-ssm", MAMBA))


@pytest.fixture
def project(wheels, bare_project):
    """An environment with torch, without setuptools."""
    serve(bare_project.index, *wheels)
    bare_project.make_environment("env")
    requirements = [word for word in shell("fx_torch_requirements").split() if word not in ("setuptools", "wheel", "pytest")]
    bare_project.uv("pip", "install", "--python", bare_project.python, "--no-deps", *requirements, timeout=900).ends(0)
    return bare_project


def add(project, archive):
    """It has been built against the torch of the environment, with tools that are not there any more."""
    serve(project.index)
    project.uv("pip", "install", "--python", project.python, "setuptools", "wheel").ends(0)
    project.uv("pip", "install", "--python", project.python, "--no-deps", "--no-build-isolation", archive, timeout=900).ends(0)
    project.uninstall("setuptools", "wheel")


def steps_of(result):
    assert result.status in (0, 4), result.err[-3000:]
    return {step["what"]: step for step in result.json["proof"]}


def test_against_torch(project):
    """Built again without isolation, and what the compiler wrote otherwise is named."""
    archive = twice(project.index.served)
    add(project, "twice==1.0")
    project.lock(timeout=900).ends(0)
    build = project.distribution("twice")["build"]
    assert build["sdist"]["sha256"] == sha256(archive) and build["sdist_from"] == "index", build
    assert ".".join(TORCH.split(".")[:2]) in build["toolchain"]["torch"], build["toolchain"]
    result = Create(project)("new", "--json", timeout=1500)
    step = steps_of(result)["build twice"]
    [so] = (site_of(os.path.abspath("new/bin/python")) / "twice").glob("_c*.so")
    assert step["state"] == "not_verified" and f"twice/{so.name} (different content, but the same dependencies)" in step["detail"], step
    assert b"scankit-create" not in so.read_bytes()
    run("new/bin/python", "-c", "import torch, twice; assert torch.ops.twice.twice(torch.ones(2)).tolist() == [2, 2]")


def test_cuda_against_torch(nvcc, project, monkeypatch):
    """A CUDAExtension with -lineinfo, as causal-conv1d has one: without isolation, once torch is there, by create and by sync the same
    bytes, and that -lineinfo was left out is said."""
    archive = device_torch(project.index.served)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    add(project, "devicetorch==1.0")
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")
    project.lock(timeout=900).ends(0)
    build = project.distribution("devicetorch")["build"]
    assert build["sdist"]["sha256"] == sha256(archive) and build["toolchain"]["code"] == ["sm_90"], build
    assert [one.rsplit(".", 1)[0] for one in build["toolchain"]["nvcc"]] == build["toolchain"]["cuda"], build["toolchain"]
    create = Create(project)
    result = create("new", "--json", timeout=1500)
    step = steps_of(result)["build devicetorch"]
    assert any(note.startswith("devicetorch==1.0 was compiled without -lineinfo") for note in result.json["notes"]), result.json["notes"]
    assert step["state"] == "not_verified" and "different content, but the same dependencies" in step["detail"], step
    project.uv("venv", "--no-project", "--python", project.installers / "python", "other").ends(0)
    result = project.env("sync", "other", "--json", variables=create.variables(), timeout=1500)
    assert steps_of(result)["build devicetorch"]["detail"] == step["detail"]
    assert record_of("other")["content"] == record_of("new")["content"]
    for name in ("new", "other"):
        run(f"{name}/bin/python", "-c", "import torch, device_torch; assert torch.ops.device_torch.twice(torch.ones(2)).tolist() == [2, 2]")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_spec_from_source(torch_wheels, bare_project, installer):
    """`from: source` of an extension that is linked with torch: built against the torch that the spec chose, and what it depends on
    comes along. `leans` needs torch and the extension itself, neither of which may be installed anew for it."""
    project = bare_project
    needs = twice(project.index.served, requires=["alpha==1.0", "leans==1.0"])
    wheel(project.index.served, "leans", "1.0", "py3-none-any", {"leans.py": b""}, requires=["torch", "twice"])
    serve_what_torch_needs(project.index.served, torch_wheels)
    for name in ("packaging", "ninja"):
        wheel(project.index.served, name, "99.0", "py3-none-any", {})
    serve(project.index, *torch_wheels.glob("*.whl"))
    Path("scankit.yaml").write_text(
        'schema: 1\ntorch: {version: "%s.*"}\nextensions:\n  twice._c: {from: source, distribution: twice, torch_abi: full}\n'
        % ".".join(TORCH.split(".")[:2]))
    result = Create(project)("new", "--spec", "scankit.yaml", "--json", uv=installer == "uv", timeout=1500)
    assert result.json["installer"] == installer and steps_of(result)["spec"]["state"] == "passed", result
    run("new/bin/python", "-c", "import alpha, torch, twice; assert torch.ops.twice.twice(torch.ones(2)).tolist() == [2, 2]")
    one = project.distribution("twice")
    assert one["build"]["sdist"]["sha256"] == sha256(needs), one
    assert "setuptools-" in one["build"]["toolchain"]["generator"].replace(" (", "-"), one


def test_mamba_of_fix(mamba, tools, torch_wheels, project, scankit):
    """What `fix --package mamba-ssm` installs: locked with its archive, and made again from that, to the byte."""
    serve_what_torch_needs(project.index.served, torch_wheels)
    # Of setuptools one release alone, with its entry points: what builds mamba-ssm is what mamba-ssm brings along.
    for file in project.index.served.glob("setuptools-*.whl"):
        file.unlink()
    shutil.copy(tools, project.index.served)
    for name, version in (("ninja", "1.13"), ("hf_xet", "1.2.0")):  # nobody imports them here
        wheel(project.index.served, name, version, "py3-none-any", {})
    serve(project.index, mamba)
    create = Create(project)
    scankit("fix", "--python", project.python, "--package", f"mamba-ssm=={MAMBA}", "--arch", "compute_75", "--yes",
            "--cache-dir", os.environ.get("SCANKIT_FIX_CACHE", "cache"), variables=create.variables(), timeout=1500).ends(0)
    project.lock(timeout=900).ends(0)
    one = project.distribution("mamba-ssm")
    assert one["source"] == "here" and one["build"]["sdist"]["sha256"] == sha256(mamba), one
    assert one["build"]["recorded"]["switches"] == {"MAMBA_FORCE_BUILD": "TRUE", "MAMBA_KEEP_CUDA_BUILD": "FALSE",
                                                    "MAMBA_SKIP_CUDA_BUILD": "TRUE"}, one["build"]
    assert one["build"]["recorded"]["torch"].startswith(TORCH), one["build"]
    assert one["build"]["toolchain"]["why_no_compilers"] == "it contains no compiled file", one["build"]["toolchain"]
    project.export("requirements", "requirements.txt").ends(0)
    [packed] = Path("scankit-wheels").glob("mamba_ssm-*.whl")
    packed.unlink()
    result = create("new", "--json", timeout=1500)
    step = steps_of(result)["build mamba-ssm"]
    assert step["state"] == "passed", step
    run("new/bin/python", "-c", "from mamba_ssm import Mamba; import selective_scan_cuda")
