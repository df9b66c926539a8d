# SPDX-License-Identifier: Apache-2.0
"""What `env suggest` prints, typed line by line as it stands: eleven described machines, the caller's index, real torch wheels.
--index-only, because the release pages, from which setup.py would download, are no package index. Minutes and 8 GB each.
Where SCANKIT_TRANSCRIPTS names a directory, what was typed and printed is put there, of which followed.md was made."""
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from fixtures import run
from program import run_program

pytestmark = pytest.mark.ctest(group="envspec.followed", labels="matrix;large;e2e", timeout=1800)

# GPU, driver, glibc, Python, installer, packages.
MACHINES = {
    "hopper": ("sm_90", "580.95.05", "2.36", "3.11", "uv", ()),
    "hopper_old_driver": ("sm_90", "550.54", "2.28", "3.11", "pip", ()),
    "ampere": ("sm_80", "535.54.03", "2.35", "3.10", "pip", ()),
    "turing": ("sm_75", "525.60.13", "2.31", "3.9", "pip", ()),
    "workstation_blackwell": ("sm_120", "570.133.20", "2.36", "3.12", "uv", ()),
    "blackwell": ("sm_100", "580.95.05", "2.36", "3.13", "uv", ()),
    "cuda_11": ("sm_86", "470.82.01", "2.31", "3.10", "uv", ()),
    "ada": ("sm_89", "560.35.03", "2.39", "3.12", "uv", ()),
    "volta": ("sm_70", "560.35.03", "2.36", "3.12", "uv", ()),
    "pinned_torch": ("sm_89", "550.54", "2.36", "3.11", "pip", ("torch==2.6.*", "mamba-ssm>=2.2.4")),
    "pascal": ("sm_61", "535.54.03", "2.36", "3.11", "uv", ()),
}

# The recurrence, step by step, beside the installed module; then the package itself. First: import of all modules.
COMPUTES = """
import torch, selective_scan_cuda
torch.manual_seed(1)
u, delta, a = torch.randn(1, 4, 8), torch.rand(1, 4, 8), -torch.rand(4, 2)
b, c = torch.randn(1, 1, 2, 8), torch.randn(1, 1, 2, 8)
out = selective_scan_cuda.fwd(u, delta, a, b, c, None, None, None, False)[0]
state, steps = torch.zeros(1, 4, 2), []
for t in range(8):
    state = torch.exp(delta[:, :, t, None] * a) * state + (delta * u)[:, :, t, None] * b[:, 0, None, :, t]
    steps.append((state * c[:, 0, None, :, t]).sum(-1))
assert torch.allclose(torch.stack(steps, -1), out, atol=1e-5), (torch.stack(steps, -1) - out).abs().max()
from importlib.metadata import version
try:
    import mamba_ssm
except RuntimeError as problem:
    # triton up to 3.3 asks the driver while a kernel is decorated: without a GPU the package cannot be imported.
    assert "0 active drivers" in str(problem) and not torch.cuda.is_available(), problem
    assert tuple(map(int, version("triton").split(".")[:2])) < (3, 4), version("triton")
print(version("mamba-ssm"), torch.__version__, torch.version.cuda)
"""


@pytest.fixture
def pythons():
    """The directories of PATH with one for each other CPython that pyenv has."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return ":".join([os.environ["PATH"], *(str(folder) for folder in sorted(root.glob("versions/3.*/bin")))])


class Transcript:
    """What a person would have typed, and the end of what was printed: of a repair all that it did, of others their last words.
    Longer lines than a wide terminal's are cut."""

    def __init__(self, title, work):
        self.title, self.work, self.lines = title, work, []

    def add(self, command, result):
        told = result.out if command.startswith("scankit ") else result.text
        told = told.replace(f"{self.work}/", "").replace(str(Path.home()), "~").splitlines()
        told = [line if len(line) <= 140 else line[:134] + " [...]" for line in told if line.strip()]
        kept = 16 if command.startswith("scankit fix ") else 3
        self.lines += [f"$ {command}", *(told if len(told) <= kept else ["[...]", *told[-kept:]]), ""]

    def write(self, path):
        path.write_text("\n".join([f"## {self.title}", "", *(f"    {line}".rstrip() for line in self.lines)]).rstrip() + "\n")


def test_transcript_keeps_the_last_lines(work):
    class Printed:
        out = "".join(f"line {n}\n" for n in range(40)) + f"\nwritten to {work}/x\n"
        err = "scankit: [3/17] compiling\n"
        text = out + err
    transcript = Transcript("one", work)
    transcript.add("scankit fix --b", Printed)
    assert transcript.lines[:3] == ["$ scankit fix --b", "[...]", "line 25"] and transcript.lines[-2:] == ["written to x", ""], transcript.lines
    transcript.add("uv pip", Printed)
    assert transcript.lines[-5:] == ["[...]", "line 39", "written to x", "scankit: [3/17] compiling", ""], transcript.lines


@pytest.mark.parametrize("machine", ["hopper", "hopper_old_driver", "ampere", "turing", "workstation_blackwell", "blackwell", "cuda_11",
                                     "ada", "volta", "pinned_torch", "pascal"])
def test_followed(machine, installers, pythons, scankit, work):
    gpu, driver, glibc, version, installer, packages = MACHINES[machine]
    if shutil.which(f"python{version}", path=pythons) is None:
        pytest.skip(f"no Python {version} here")
    variables = {"PATH": f"{Path(scankit.path).parent}:{installers}:{pythons}", "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1",
                 "XDG_CACHE_HOME": os.environ.get("SCANKIT_FIX_CACHE", work / "cache")}
    if installer == "pip":
        variables["PATH"] = f"{Path(scankit.path).parent}:{pythons}"
    transcript = Transcript(", ".join([gpu, f"driver {driver}", f"glibc {glibc}", f"Python {version}", installer, *packages]), work)

    def typed(command, timeout, statuses=(0,)):
        result = run_program("sh", "-c", command, variables=variables, timeout=timeout)
        if result.status not in statuses and best["torch_source"] != "index" and "failed to lookup address" in result.text:
            pytest.skip("PyTorch's own archive, which has this build, cannot be reached from here")
        result.ends(result.status if result.status in statuses else statuses[0])
        transcript.add(command, result)

    words = ("env", "suggest", "--gpu", gpu, "--driver", driver, "--glibc", glibc, "--python", version, "--index-only", "--installer", installer,
             *packages)
    # By its name, as a user types it: the printed commands name the program as it was called.
    suggested = run_program("scankit", *words, "--json", variables=variables, timeout=300).ends(0)
    best = suggested.json["sets"][0]
    assert best["index"]["state"] == "confirmed" or best["torch_source"] != "index", best["index"]
    printed = run_program("scankit", *words, variables=variables, timeout=300).ends(0)
    transcript.lines += [f"$ {shlex.join(['scankit', *words])}", *printed.out.partition("\nAlternative")[0].splitlines(), ""]
    for command in best["commands"]:
        # 4: what only the GPU itself could say.
        typed(command, 1500, (0, 4) if command.startswith("scankit doctor") else (0,))
    modules = [package["module"] for package in best["packages"]]
    # Of those that were asked for: mamba-ssm does without causal-conv1d.
    assert modules == (["selective_scan_cuda"] if packages else ["selective_scan_cuda", "causal_conv1d_cuda"]), best["packages"]
    for module in modules:
        typed(f"scankit validate --quick --python .venv/bin/python --module {module}", 600)
    computed = run(".venv/bin/python", "-c", f"import torch, {', '.join(modules)}\n{COMPUTES}")
    assert best["torch"] + " " in computed.replace("+", " ")
    if folder := os.environ.get("SCANKIT_TRANSCRIPTS"):
        transcript.write(Path(folder) / f"{list(MACHINES).index(machine)}-{machine}.md")
    shutil.rmtree(".venv")
