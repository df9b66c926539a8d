# SPDX-License-Identifier: Apache-2.0
"""Repairs that run the user's own installer, and environments that an installer keeps."""
import json
import os
import re
import time
from pathlib import Path

import pytest

from environment import Environment
from fixtures import TRITON, host_python, minor_of, run, shared_python, shell_or_skip, site_of
from repairs import WEB_PAGE, Repair, sha256
from sdists import source_archive

pytestmark = pytest.mark.ctest(group="fix", labels="matrix;e2e", timeout=1500, fixtures="torch_env")


@pytest.fixture
def ready_for_mamba(repair, monkeypatch):
    """What mamba_ssm imports is there; of torch's metadata nothing may be fetched (its CUDA wheels are gigabytes)."""
    shell_or_skip("fx_wheels")
    here = repair("plain")
    here.env.install_transformers_4()
    here.env.install_with(TRITON)
    monkeypatch.setenv("PIP_NO_DEPS", "1")
    return here


def fix(here, *words):
    return here.fix("--arch", "compute_75", *words)


BOTH_WORK = """
from mamba_ssm import Mamba
import torch, selective_scan_cuda, causal_conv1d_cuda
from mamba_ssm.ops import selective_scan_interface as interface
assert interface.selective_scan_cuda is selective_scan_cuda and interface.causal_conv1d_fn is not None
for module in (selective_scan_cuda, causal_conv1d_cuda):
    assert module.__file__.endswith(".abi3.so"), module.__file__
"""


def test_mamba(ready_for_mamba):
    here = ready_for_mamba
    before = here.everything(contents=False)
    both = ["--package", "mamba-ssm==2.3.1", "--package", "causal-conv1d==1.6.1"]
    fix(here, *both, "--dry-run").ends(0, "MAMBA_SKIP_CUDA_BUILD=TRUE")
    fix(here, "--package", "mamba-ssm==2.3.1").ends(1)
    assert here.everything(contents=False) == before, "without consent something changed"
    fix(here, *both, "--yes").ends(0)
    here.runs(BOTH_WORK)
    assert (here.site / "mamba_ssm-2.3.1.dist-info").is_dir(), "the package is not the installer's own"
    fix(here, "--package", "mamba-ssm", "--yes").ends(0)
    here.restore().ends(0, "mamba-ssm==2.3.1")
    assert here.everything(contents=False) == before
    fix(here, "--package", "flash-attn", "--yes").ends(2)  # other packages are not ours to choose


def restore_once_it_may(here):
    """An installer dies with scankit, and holds the lock until then."""
    for _ in range(100):
        result = here.restore()
        if result.status == 0 or "another scankit is changing this environment" not in result.err:
            break
        time.sleep(0.05)
    result.ends(0)


def killed_when(here, seen, *words, err=None, variables=None, arch=("--arch", "compute_75")):
    """Starts a fix and kills it when `seen()`."""
    fixer = here.scankit.start("fix", "--python", here.python, *arch, *words, err=err, variables=variables)
    while not seen() and fixer.poll() is None:
        time.sleep(0.002)
    running = fixer.poll() is None
    fixer.kill()
    fixer.wait()
    return running


DAEMON = """
import itertools, os, time
open({mark!r}, "w").write(str(os.getpid()))
for i in itertools.count():
    open("{site}/stray-%d" % i, "w").close()
    time.sleep(0.01)
"""


def test_killed_installer(ready_for_mamba, work):
    """It is killed with scankit, in the middle of its work; whoever comes next finds the old packages."""
    here = ready_for_mamba
    before = here.everything(contents=False)
    for step in ("Collecting mamba-ssm", "Building wheel", "Installing collected"):
        progress = work / "progress"
        progress.write_text("")
        killed_when(here, lambda: step in progress.read_text(errors="replace"), "--package", "mamba-ssm==2.3.1", "--yes", err=progress)
        restore_once_it_may(here)
        assert here.everything(contents=False) == before, f"killed at '{step}'"

    # What a build started is of no session and no parent of ours, and writes on.
    (work / "daemon.py").write_text(DAEMON.format(mark=str(work / "daemon"), site=here.site))
    source_archive(work / "index", "mamba-ssm", "99.3", f"""\
if "bdist_wheel" in sys.argv:
    subprocess.run(["setsid", "-f", sys.executable, {str(work / "daemon.py")!r}])
    subprocess.run(["sleep", "60"])
""")
    assert killed_when(here, (here.site / "stray-9").exists, "--package", "mamba-ssm==99.3", "--yes",
                       variables={"PIP_NO_INDEX": 1, "PIP_FIND_LINKS": work / "index"}), "it ended by itself"
    restore_once_it_may(here)  # until they have all ended the lock is theirs
    assert not os.path.exists(f"/proc/{(work / 'daemon').read_text()}"), "the build's daemon has not ended"
    assert here.everything(contents=False) == before
    fix(here, "--package", "mamba-ssm==2.3.1", "--yes").ends(0)


def test_failed_installer(ready_for_mamba):
    """It leaves no trace."""
    here = ready_for_mamba
    before = here.everything(contents=False)
    fix(here, "--package", "mamba-ssm==99.0", "--yes").ends(5, "mamba-ssm==99.0")
    assert here.everything(contents=False) == before
    run("rm", "-r", here.site / "tokenizers")
    before = here.everything(contents=False)
    fix(here, "--package", "mamba-ssm==2.3.1", "--yes").ends(6, "nothing was changed")  # it is installed, and does not import
    assert here.everything(contents=False) == before


def test_exchanged_torch(ready_for_mamba, work, monkeypatch):
    """torch is what all compiled modules need: it is held where that can be said, and comes back where it went all the same."""
    here, index = ready_for_mamba, work / "index"
    monkeypatch.delenv("PIP_NO_DEPS")
    torch = source_archive(index, "torch", "2.4.0")
    run(here.python, "-m", "pip", "--disable-pip-version-check", "-q", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w",
        index, torch)
    source_archive(index, "mamba-ssm", "99.1", requires='"torch==2.4.0"')
    source_archive(index, "mamba-ssm", "99.2", """\
if "bdist_wheel" in sys.argv:
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--no-deps", "torch==2.4.0"])
""")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    before = here.everything(contents=False)
    fix(here, "--package", "mamba-ssm==99.1", "--dry-run").ends(0, "--constraint <(printf '%s\\n' torch==2.11.0")
    result = fix(here, "--package", "mamba-ssm==99.1", "--yes").ends(5)
    assert re.search("ResolutionImpossible|conflicting dependencies", result.err), result
    assert here.everything(contents=False) == before
    # The same command without that exchanges it, really.
    run(here.python, "-m", "pip", "-q", "install", "--no-build-isolation", "--dry-run", "--report", work / "report.json", "mamba-ssm==99.1")
    installed = [one["metadata"] for one in json.loads((work / "report.json").read_text())["install"]]
    assert len([one for one in installed if (one["name"], one["version"]) == ("torch", "2.4.0")]) == 1, installed

    # A package whose build exchanges torch behind the installer's back.
    result = fix(here, "--package", "mamba-ssm==99.2", "--yes").ends(5, "install a release of the package that supports torch 2.11.0")
    assert re.search(r"the installer replaced torch 2\.11\.0.* with 2\.4\.0, which was not requested", result.err), result
    assert here.everything(contents=False) == before
    here.runs('import torch; assert torch.__version__.startswith("2.11.0") and torch.zeros(2).sum() == 0')


@pytest.fixture
def uv_project(repair, scankit, work, monkeypatch):
    """A project of uv's, in whose environment alone a module is broken."""
    uv = Path(shell_or_skip("fx_installers")) / "bin"
    for name, value in (("UV_CACHE_DIR", work / "uv"), ("UV_OFFLINE", 1), ("UV_NO_INDEX", 1),
                        ("UV_FIND_LINKS", shell_or_skip("fx_packages", "markupsafe==3.0.2")), ("PATH", f"{uv}:{os.environ['PATH']}")):
        monkeypatch.setenv(name, str(value))
    repair("bare")  # for the cache
    project = work / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(f"""\
[project]
name = "mine"
version = "1"
requires-python = "=={minor_of(host_python())}.*"
# my own comment
dependencies = ["markupsafe==3.0.2"]
""")
    run("uv", "sync", "-q", "--python", host_python(), cwd=project)
    here = Repair(scankit, Environment(project / ".venv"))
    (here.site / "torch.pth").write_text(f"{site_of(shared_python())}\n")
    (here.site / "causal_conv1d_cuda.so").write_text(WEB_PAGE)
    here.project = project
    return here


def files_of(project):
    return [(project / name).read_bytes() for name in ("pyproject.toml", "uv.lock")]


MODULE = ["--module", "causal_conv1d_cuda"]
IMPORTS = "import torch, causal_conv1d_cuda"


def test_uv_project(uv_project, work):
    here, project = uv_project, uv_project.project
    cached = next((work / "uv").rglob("_speedups*.so"))  # a file that uv links from its cache
    in_cache, files, before = sha256(cached), files_of(project), here.everything(contents=False)
    without_uv(here, files, before, work)

    fix(here, *MODULE, "--dry-run").ends(0, f"{project}/pyproject.toml gets a source entry")
    fix(here, *MODULE, "--yes").ends(0)
    described = (project / "pyproject.toml").read_text()
    assert "scankit-causal-conv1d-cuda = { path = " in described and "my own comment" in described, described
    assert 'name = "scankit-causal-conv1d-cuda"' in (project / "uv.lock").read_text()
    run("uv", "sync", "-q", cwd=project)
    here.runs(IMPORTS)
    run("uv", "sync", "-q", "--python", host_python(), cwd=project, variables={"UV_PROJECT_ENVIRONMENT": "other"})
    assert list(project.glob("other/lib/python*/site-packages/causal_conv1d_cuda.abi3.so")), "a new environment of the project lacks it"
    [wheel] = (project / ".scankit/wheels").glob("*.whl")
    run(shared_python(), "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps", "--no-index", "-d", work / "taken",
        wheel)
    assert sha256(cached) == in_cache, "uv's cache has other bytes"
    run("rm", "-r", project / "other")
    here.restore().ends(0)
    assert files_of(project) == files, "the project still names it"
    assert here.everything(contents=False) == before


def without_uv(here, files, before, work):
    """The plan says what uv will do, and uv does it."""
    def fix_without(*words):
        return here.fix("--arch", "compute_75", *MODULE, *words, variables={"UV": None, "HOME": work, "PATH": "/usr/bin:/bin"})

    fix_without("--dry-run").ends(0, f"{here.project} is a uv project, but uv is not on PATH")
    fix_without("--yes").ends(0, "to do by hand: ")
    assert files_of(here.project) == files
    run("uv", "sync", "-q", cwd=here.project)
    here.fails(IMPORTS)
    here.restore().ends(0)
    assert here.everything(contents=False) == before
