# SPDX-License-Identifier: Apache-2.0
"""What ci/fixtures.sh makes, for Python: interpreters, environments with a real torch, wheels, headers of other releases.

The shell functions stay the one place that downloads; everything they make is kept in $SCANKIT_CACHE. Nothing here needs
pytest, so that scripts can plant a fault too. A test that cannot run here raises SkipTest, which
pytest knows as a skip.
"""
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from unittest import SkipTest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
MODULE_SOURCES = HERE / "module"
MACHINES = HERE.parent / "machines"
CACHE = Path(os.environ.get("SCANKIT_CACHE") or Path.home() / ".cache/scankit-dev")

# A user's pip.conf may ask for what a venv refuses; fixtures.sh says the same to the pips that it starts.
os.environ.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_QUIET="0")


def version(name):
    """FX_TORCH (what is installed), FX_OTHER_TORCH (whose headers break modules) and so on, as ci/fixtures.sh has them."""
    return re.search(rf"^{name}=(\S+)", (REPOSITORY / "ci/fixtures.sh").read_text(), re.MULTILINE)[1]


TORCH, OTHER_TORCH = version("FX_TORCH"), version("FX_OTHER_TORCH")
TRITON = re.search(r"^FX_TRITON=(\S+)", (HERE / "packages.sh").read_text(), re.MULTILINE)[1]


class Failed(AssertionError):
    """A command of a test did not end as it must."""


def run(*command, cwd=None, variables=None, stdin=None, status=0, timeout=1500):
    """Runs a command of the test itself (a compiler, pip, an interpreter) and returns its standard output. `status` None
    takes any; otherwise another exit status fails the test with all that the command said."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **(variables or {})}, text=True,
                          errors="replace", input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    if status is not None and done.returncode != status:
        raise Failed(f"{' '.join(map(str, command))[:600]}\nends with status {done.returncode}, not {status}:\n"
                     f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def shell(function, *words, file="ci/fixtures.sh"):
    """Calls a shell function of `file`; what it prints last is the path that it made."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", '. "$0"; "$@"', str(REPOSITORY / file), function, *map(str, words)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{file}: {function} {' '.join(map(str, words))} ends with status {done.returncode}")
    return done.stdout.strip()


def shell_or_skip(function, *words, file="ci/fixtures.sh"):
    """As shell(); where it cannot be made here (no network, say) the test is skipped."""
    try:
        return shell(function, *words, file=file)
    except Failed as problem:
        raise SkipTest(str(problem)) from None


def follows_schema(answer):
    """Holds JSON text to the published schema that it names, by the library for that."""
    python = Path(shell_or_skip("fx_report_readers")) / "bin/python"
    folder = REPOSITORY / "doctor/report"
    done = subprocess.run([python, "-B", folder / "tests/follows_schema.py", folder / "schema"], input=answer, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


@functools.lru_cache(maxsize=None)
def host_python():
    """A real CPython (no shim) with venv and headers, which the environments are made from."""
    return Path(shell("fx_python"))


@functools.lru_cache(maxsize=None)
def shared_environment():
    """The venv with torch that all tests share. They read it; what they change is an environment of their own."""
    return Path(shell("fx_torch_env"))


def shared_python():
    return shared_environment() / "bin/python"


@functools.lru_cache(maxsize=None)
def site_of(python):
    return Path(run(python, "-c", 'import sysconfig; print(sysconfig.get_path("purelib"))').strip())


@functools.lru_cache(maxsize=None)
def suffix_of(python):
    return run(python, "-c", 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))').strip()


@functools.lru_cache(maxsize=None)
def include_of(python):
    return Path(run(python, "-c", 'import sysconfig; print(sysconfig.get_path("include"))').strip())


def shared_torch():
    """torch's folder in the shared environment."""
    return site_of(shared_python()) / "torch"


def torch_of(python):
    """torch's directory, without importing it; None where this Python has no torch."""
    found = run(python, "-c", 'import importlib.util as i; spec = i.find_spec("torch"); print(spec.origin if spec else "")').strip()
    return Path(found).parent if found else None


@functools.lru_cache(maxsize=None)
def python_with_torch():
    """The Python with torch that the caller names in SCANKIT_TEST_PYTHON, else the shared environment's; else a skip."""
    python = os.path.abspath(os.environ.get("SCANKIT_TEST_PYTHON") or shared_python())
    if not os.access(python, os.X_OK) or not torch_of(python):
        raise SkipTest("no Python with torch (SCANKIT_TEST_PYTHON)")
    return Path(python)


def minor_of(python):
    """3.11, say."""
    return run(python, "-c", 'import sys; print("%d.%d" % sys.version_info[:2])').strip()


def has_sitecustomize(python):
    """Debian's Python has a sitecustomize of its own, which comes before that of any environment."""
    return os.path.exists(os.path.join(os.path.dirname(run(python, "-c", "import os; print(os.__file__)").strip()), "sitecustomize.py"))


def need_root(what):
    if os.getuid() != 0:
        raise SkipTest(f"only root may {what}")


def need_nvcc():
    """The CUDA toolkit's folder, or a skip."""
    found = shutil.which("nvcc")
    if not found:
        raise SkipTest("nvcc not found,")
    usual = "/usr/local/cuda/bin/nvcc"
    return Path(os.path.realpath(usual if os.path.exists(usual) else found)).parent.parent
