#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes doctor/run/transcripts.md from commands that really fail: run_transcripts.py SCANKIT >doctor/run/transcripts.md

Each story is planted in an environment of its own and run as a user would run it. What cannot run on this machine (docker,
podman, uv, Slurm, control groups) is left out with a line on standard error. Paths are shortened, and frames of Python's,
torch's and the installers' own files are replaced by [...].
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from environment import Environment, module_text
from fixtures import python_with_torch, shell
from program import environment_with

SYMBOL = "_ZN3c104cuda9SetDeviceEi"
IMPORT = "import torch, selective_scan_cuda\n"
CRASHING = ("#include <Python.h>\n#include <unistd.h>\n"
            "PyMODINIT_FUNC PyInit_crashing_cuda(void) { usleep(600000); *(volatile int *)0 = 1; return 0; }\n")
HEAD = """# Failures under `scankit run`

Real commands that really failed, and all that was printed, written by
`doctor/tests/e2e/run_transcripts.py`. Paths are shortened, and `[...]` replaces frames of Python,
torch and the installers. With `-q` only the verdict and the command are printed.
"""
FOREIGN = re.compile(r'File "(?:<frozen|.*(?:/lib/python3|site-packages/(?:torch|pip|setuptools|_pytest|pluggy|xdist|execnet)|/builds-v0/))')


class Stage:
    """A directory with a broken environment, in which commands are run."""

    def __init__(self, scankit, work):
        self.scankit, self.work, self.venv = scankit, work, Environment.make(work / "venv", "tested")
        self.venv.plain_module(self.venv.module_file, text=f"{module_text()}\nint {SYMBOL}(int); int ask(void); "
                               f"int ask(void) {{ return {SYMBOL}(0); }}\n")
        self.variables = {}
        self.base = Path(python_with_torch()).parent.parent
        self.real_base = Path(os.path.realpath(self.base / "bin/python")).parent.parent

    def write(self, name, text, executable=False):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if executable:
            path.chmod(0o755)

    def shorten(self, text):
        for path in sorted({self.scankit.parent, Path(self.scankit).resolve().parent}, key=str):
            text = text.replace(f"{path}/", "")
        for path, name in ((self.work, ""), (Path(os.path.realpath(self.base)), "base"), (self.base, "base"), (self.real_base, "base")):
            text = text.replace(f"{path}/", f"{name}/" if name else "").replace(str(path), name or ".")
        return re.sub(r"/\S*/\.cache/uv/\S*?/(?=lib/python)", "uv-cache/", text)

    def run(self, words, path):
        variables = {"PATH": path, "LC_ALL": "C.UTF-8", "COLUMNS": "100", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                     "PIP_FIND_LINKS": None}
        done = subprocess.run(words, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=600, env=environment_with({**variables, **self.variables}))
        return done.stdout


def without_foreign_frames(text):
    """A frame is its line, and the source and the marks below it, which are indented further."""
    lines, skips = [], None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" │|"))
        if FOREIGN.search(line):
            if not lines or lines[-1] != "[...]":
                lines.append("[...]")
            skips = indent
        elif skips is None or indent <= skips or 'File "' in line:
            skips = None
            lines.append(line)
    return "\n".join(lines)


STORIES = []


def story(title, note):
    def add(function):
        STORIES.append((title, note, function))
        return function
    return add


@story("A module that was built for another torch", "The traceback and the facts of the interpreter that printed it are one finding.")
def other_torch(stage):
    stage.write("train.py", IMPORT)
    return ["--", "venv/bin/python", "train.py"]


@story("A program without torch", "A build would be told to use the environment that has torch; a program needs the package.")
def no_torch(stage):
    Environment.make(stage.work / "bare", "bare")
    stage.write("train.py", IMPORT)
    return ["-q", "--", "bare/bin/python", "train.py"]


@story("A missing package, in an environment in which something else is broken too",
       "The error that ended the command comes first, and the last line is about it.")
def missing_package(stage):
    stage.write("config.py", "import yaml\n")
    return ["-q", "--", "venv/bin/python", "config.py"]


@story("A crash without a traceback", "The kernel's log names the file. Its import is tried again, and crashes.")
def crash(stage):
    stage.venv.plain_module(stage.venv.site / f"crashing_cuda{stage.venv.suffix}", text=CRASHING)
    stage.write("resume.py", "import crashing_cuda\n")
    return ["-q", "--", "venv/bin/python", "resume.py"]


@story("A worker of torchrun", "The second traceback is torchrun's and says nothing; the interpreter is known from the processes below "
       "the command.")
def torchrun(stage):
    stage.write("train.py", IMPORT)
    return ["-q", "--", "venv/bin/python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "train.py"]


@story("A test whose import fails", "")
def pytest_import(stage):
    stage.write("test_scan.py", f"def test_scan():\n    {IMPORT}")
    return ["-q", "--", "venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_scan.py"]


@story("uv run", "")
def uv_run(stage):
    stage.write("train.py", IMPORT)
    return ["-q", "--", "uv", "run", "--no-project", "--offline", "--python", "venv/bin/python", "train.py"]


@story("uv pip install, whose build imports the broken module", "")
def uv_pip(stage):
    stage.write("kernels/setup.py", f"from setuptools import setup\n{IMPORT}setup(name='kernels')\n")
    return ["-q", "--", "uv", "pip", "install", "--offline", "--python", "venv/bin/python", "--no-build-isolation", "--no-deps", "./kernels"]


@story("pip, and a build that needs nvcc", "The Python to diagnose is not the one of pip here, so it is given.")
def pip_nvcc(stage):
    stage.write("kernels/setup.py", "import subprocess\nprint('release', subprocess.check_output(['nvcc', '-V'], text=True))\n")
    stage.variables["PATH"] = "/usr/bin:/bin"
    return ["-q", "--no-import", "--python", "venv/bin/python", "--", str(stage.base / "bin/python"), "-m", "pip", "install",
            "--no-build-isolation", "--no-deps", "--target", "to", "./kernels"]


@story("ninja below pip", "The compiler's error is the reason, not what pip prints at the end.")
def pip_ninja(stage):
    stage.write("kernels/setup.py", "from setuptools import setup\nfrom torch.utils.cpp_extension import BuildExtension, CppExtension\n"
                "setup(name='kernels', ext_modules=[CppExtension('kernels_cuda', ['scan.cpp'])], cmdclass={'build_ext': BuildExtension})\n")
    stage.write("kernels/scan.cpp", "#include <cutlass/cutlass.h>\n")
    return ["-q", "--no-import", "--", str(stage.base / "bin/python"), "-m", "pip", "install", "--no-build-isolation", "--no-deps",
            "--target", "to", "./kernels"]


@story("ninja, whose rule starts Python", "")
def ninja(stage):
    stage.write("train.py", IMPORT)
    stage.write("build.ninja", "rule generate\n  command = venv/bin/python train.py\nbuild kernels.cu: generate\n")
    return ["-q", "--", "ninja"]


@story("srun", "srun does not start the tasks itself, so only the output is examined. The line before the verdict shows how to examine "
       "the node.")
def srun(stage):
    stage.write("train.py", IMPORT)
    return ["-q", "--", "srun", "-n2", "venv/bin/python", "train.py"]


@story("scankit run behind srun", "It is on the node, and examines it.")
def behind_srun(stage):
    stage.write("train.py", IMPORT)
    return ["srun", "-n1", "scankit", "run", "-q", "--", "venv/bin/python", "train.py"]


@story("srun, and a program that the node does not have", "")
def srun_missing(_):
    return ["--", "srun", "-n1", "trian"]


@story("docker without its daemon", "")
def docker(_):
    return ["--", "docker", "-H", "unix:///run/no-docker.sock", "run", "--rm", "--gpus", "all", "pytorch/pytorch", "python", "train.py"]


@story("podman, and a GPU that it cannot give to a container", "")
def podman(_):
    if shutil.which("podman"):
        subprocess.run("tar -c -T /dev/null | podman import -q - pytorch", shell=True, check=True, stdout=subprocess.DEVNULL)
    return ["-q", "--", "podman", "run", "--rm", "--network", "none", "--device", "nvidia.com/gpu=all", "pytorch", "python", "train.py"]


@story("Memory runs out", "The kernel killed the process, which is in a control group with a limit of 100 MB.")
def memory(stage):
    group = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").exists() else "/sys/fs/cgroup") / "scankit-transcript"
    group.mkdir(exist_ok=True)
    (group / ("memory.limit_in_bytes" if group.parent.name == "memory" else "memory.max")).write_text("100M")
    stage.write("train.py", "data = []\nwhile True:\n    data.append(bytearray(b'x') * (1 << 20))\n")
    stage.write("limited", f'#!/bin/sh\necho $$ >{group}/cgroup.procs\nexec "$@"\n', executable=True)
    return ["--", "./limited", "venv/bin/python", "train.py"]


@story("A time limit", "")
def time_limit(stage):
    stage.write("train.py", "import time\ntime.sleep(60)\n")
    return ["--", "timeout", "1", "venv/bin/python", "train.py"]


@story("A failure of the program, below make", "Nothing is examined.")
def below_make(stage):
    stage.write("Makefile", "test:\n\tvenv/bin/python -c \"assert 1 + 1 == 3, 'the loss is wrong'\"\n")
    return ["--", "make", "test"]


@story("scankit run below scankit run", "The inner one explains, the outer one does not repeat it.")
def nested(_):
    return ["--", "sh", "-c", "scankit run -- sh -c 'exit 3'"]


@story("A tool of an environment that was moved", "The command is not started. The exit status is 126, as in a shell.")
def moved(stage):
    stage.write("old/bin/pip", "#!/opt/old/bin/python\n", executable=True)
    return ["--", "old/bin/pip", "install", "mamba-ssm"]


def quoted(words):
    return " ".join(word if re.fullmatch(r"[\w./:=+-]+", word) else f'"{word}"' for word in words)


def missing(program, path):
    """Why a program cannot be run here; "" if it can."""
    if "/" not in program and not shutil.which(program, path=path):
        return f"{program} not found"
    if program == "srun" and subprocess.run(["sinfo"], capture_output=True).returncode:
        return "no Slurm runs here; ci/fleet/tests/slurm.sh starts one"
    return ""


def write(scankit, out):
    uv = Path(shell("fx_installers")) / "bin"
    out.write(HEAD)
    for title, note, function in STORIES:
        with tempfile.TemporaryDirectory(prefix="scankit-transcript.") as folder:
            stage = Stage(scankit, Path(folder).resolve())
            words = function(stage)
            program = words[words.index("--") + 1] if words[0] != "srun" else "srun"
            path = f"{uv}:{scankit.parent}:{os.environ['PATH']}"
            if why := missing(program, path):
                print(f"left out: {title}: {why}", file=sys.stderr)
                continue
            if words[0] != "srun":
                words = ["scankit", "run", *words]
            printed = stage.run([str(scankit) if word == "scankit" else word for word in words], path)
            command = stage.shorten(quoted(words))
            text = without_foreign_frames(stage.shorten(printed)).rstrip("\n")
            body = "\n".join(f"    {line}".rstrip() for line in [f"$ {command}", *text.split("\n")])
            out.write(f"\n## {title}\n\n" + (f"{textwrap.fill(note, 100)}\n\n" if note else "") + f"{body}\n")
            out.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    write(Path(os.path.abspath(sys.argv[1])), sys.stdout)
