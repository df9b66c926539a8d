# SPDX-License-Identifier: Apache-2.0
"""`scankit build --flavor torch` against the torch of an environment, with the module of the fewest device images;
test_torch_flavor_far.py has the others."""
import os
import re
import shutil
from pathlib import Path

import pytest

from fixtures import python_with_torch, run, site_of, suffix_of, torch_of

MODULE = "causal_conv1d_cuda"
pytestmark = pytest.mark.ctest(group="builder.torch_flavor", timeout=900, fixtures="torch_env")


@pytest.fixture
def env(environment, monkeypatch):
    """The environment that is built for."""
    if not shutil.which("g++"):
        pytest.skip("no g++")
    monkeypatch.delenv("CXX", raising=False)
    return environment("tested")


@pytest.fixture
def flavor(convolution, env):
    """flavor(STATUS, SENTENCE, python=..., VARIABLE=VALUE...): builds for the environment."""
    def flavor(status, sentence="", python=env.python, **variables):
        return convolution("--flavor", "torch", "--python", python, "--arch", "compute_75", variables=variables).ends(status, sentence)
    return flavor


@pytest.fixture
def compiler(work):
    """compiler(NAME, WORD...): a directory whose g++ is the real one with these words more; `first` is run before it."""
    def compiler(name, *words, first=""):
        program = work / name / "g++"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n{first}\nexec {shutil.which("g++")} "$@" {" ".join(words)}\n')
        program.chmod(0o755)
        return program.parent
    return compiler


def test_usage(scankit, flavor, work):
    scankit("build", "--flavor", "pybind").ends(2, "universal and torch")
    flavor(5, "CXX selects the compiler /nowhere/g++", CXX="/nowhere/g++")
    (work / "nothing").mkdir()
    flavor(5, "build-essential", PATH=work / "nothing")


def test_unfit_compilers(flavor, compiler, env):
    old = compiler("old", "-U__GNUC__", "-D__GNUC__=8")
    flavor(5, "torch's headers need gcc 9 or newer", PATH=old)
    flavor(5, CXX=old / "g++")
    flavor(5, "need C++", PATH=compiler("standard", "-U__cplusplus", "-D__cplusplus=201402L"))
    abi = int(run(env.python, "-c", "import torch; print(int(torch.compiled_with_cxx11_abi()))"))
    other = compiler("abi", "-U_GLIBCXX_USE_CXX11_ABI", f"-D_GLIBCXX_USE_CXX11_ABI={1 - abi}")
    flavor(5, "CXX11 ABI that torch is built with", PATH=other)  # before anything is compiled


def test_failing_compilers(flavor, compiler, convolution):
    killed = compiler("killed", first='case "$*" in *" -c "*) kill -9 $$ ;; esac')
    flavor(5, "probably for lack of memory", PATH=f"{killed}:{os.environ['PATH']}")
    failing = compiler("failing", first=f"""case "$*" in *" -c "*) exec '{shutil.which("g++")}' "$@" -std=c++11 ;; esac""")
    result = flavor(5, "#error", PATH=f"{failing}:{os.environ['PATH']}")
    assert len(result.err.splitlines()) < 20, result
    assert not convolution.out.exists(), "something is left behind"


def test_unfit_torch(flavor, env):
    """A torch of links to the real one, without one of its entries."""
    real, torch = torch_of(python_with_torch()), env.site / "torch"

    def other_torch(without):
        shutil.rmtree(torch, ignore_errors=True)
        torch.mkdir()
        for entry in real.iterdir():
            if entry.name != without:
                (torch / entry.name).symlink_to(entry)

    other_torch("include")
    flavor(5, "do not say which C++ they need")
    other_torch("lib")
    (torch / "lib").mkdir()
    for library in (real / "lib").iterdir():
        if library.name == "libc10.so":
            (torch / "lib" / library.name).write_text("\n")
        else:
            (torch / "lib" / library.name).symlink_to(library)
    flavor(5, "the string ABI of torch")
    other_torch("version.py")
    text = (real / "version.py").read_text()
    (torch / "version.py").write_text(re.sub(r"(?m)^cuda.*=.*", "cuda = '11.8'", text))
    flavor(5, "this torch is built with CUDA 11.8")
    shutil.rmtree(torch)
    (env.site / "torch.pth").unlink()
    flavor(5, "without --flavor torch")


def test_python_without_its_headers(flavor, env, work):
    """An interpreter as a distribution ships it without its -dev package: all but the headers."""
    real = python_with_torch()
    base = Path(run(real, "-c", "import sys; print(sys.base_prefix)").strip())
    version = run(real, "-c", 'import sys; print("python%d.%d" % sys.version_info[:2])').strip()
    python, stdlib = work / "base/bin" / version, work / "base/lib" / version
    for folder in (python.parent, stdlib.parent):
        folder.mkdir(parents=True)
    shutil.copy(os.path.realpath(real), python)
    run("cp", "-rs", base / "lib" / version, stdlib.parent)
    for data in stdlib.glob("_sysconfigdata_*.py"):
        lines = [line if "'INCLUDEPY': " not in line else line[:line.index("'INCLUDEPY'")] + "'INCLUDEPY': '/nowhere',"
                 for line in data.read_text().splitlines()]
        data.unlink()
        data.write_text("\n".join(lines) + "\n")
    packages = site_of(python)  # Debian's is no lib/python*/site-packages
    packages.mkdir(parents=True, exist_ok=True)
    shutil.copy(env.site / "torch.pth", packages)
    flavor(5, "needs Python.h", python=python)
    shutil.rmtree(work / "base")


def test_module(flavor, convolution, env, scankit):
    flavor(0, "string ABI) and Python")
    module = convolution.out / f"{MODULE}{suffix_of(env.python)}"
    assert module.stat().st_size
    convolution.manifest(module).ends(0, '"flavor": "torch"')
    first = module.read_bytes()
    flavor(0, "is in the cache")
    assert module.read_bytes() == first, "a second build has other bytes"
    shutil.copy(module, env.site)
    scankit.report("--python", env.python, "--module", MODULE).ends(0)
    run(env.python, "-c", f'import torch, {MODULE} as m; assert m.scankit_info()["flavor"] == "torch"')
    scankit("validate", "--python", env.python, "--module", module, "--quick", "--no-timing", timeout=600).ends(0)
