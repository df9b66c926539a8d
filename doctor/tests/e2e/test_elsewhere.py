# SPDX-License-Identifier: Apache-2.0
"""--so FILE --from SNAPSHOT: would this file import and run on that machine? The machines are recorded ones (tests/machines),
of which no file is at hand, and this one as its snapshot tells it."""
import json
import os
import zipfile

import pytest

from environment import MODULE, Environment, stub_library
from faults_libraries import glibc_too_old
from fixtures import CACHE, MACHINES, minor_of, shared_environment, shared_python, shell_or_skip, suffix_of

pytestmark = pytest.mark.ctest(group="elsewhere", fixtures="torch_env;modules")
CPU = MACHINES / "cpu_torch211/snapshot.json"  # Python 3.11, torch 2.11+cu130, no GPU
H200 = MACHINES / "h200_torch211/snapshot.json"  # Python 3.12, torch 2.11+cu130, one H200


@pytest.fixture
def torch(modules):
    """The shared environment, to link against; nothing is put into it."""
    return Environment(shared_environment(), modules)


@pytest.fixture
def file(work):
    """Where a module is linked in the test's own folder."""
    return work / (MODULE + suffix_of(shared_python()))


@pytest.fixture
def python_311():
    if minor_of(shared_python()) != "3.11":
        pytest.skip("the recorded machine has Python 3.11, and torch's here is another")


@pytest.fixture
def examine(scankit):
    return lambda snapshot, file, *words: scankit.doctor("--from", snapshot, "--so", file, *words)


def wheel_of(file, tag):
    """A wheel of one module and the least metadata."""
    name = f"m-1-{tag}-{tag}-linux_x86_64.whl"
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.write(file, file.name)
    return name


def taken(scankit, *words):
    """The snapshot of an environment of this machine."""
    scankit("snapshot", "--python", shared_python(), "--out", "here.json", *words, timeout=280).ends(0)
    return "here.json"


def test_good_file(examine, torch, file, python_311):
    torch.link_good(file)
    result = examine(CPU, file.name).diagnosis("healthy")
    # A torch name that nobody exports must not pass: what was taken on trust is said.
    assert result.json.get("not_checked"), "nothing is said of what was taken on trust"


def test_good_wheel(examine, torch, file, python_311):
    torch.link_good(file)
    examine(CPU, wheel_of(file, "cp311")).diagnosis("healthy")


def test_other_torch(examine, torch, file, python_311):
    torch.link_stale(file)
    examine(CPU, file.name).diagnosis("broken", "torch_version_mismatch")


def test_other_string_abi(examine, torch, file, python_311):
    torch.link_module(file, *torch.objects("binding-oldabi", "scan"))
    examine(CPU, file.name).diagnosis("broken", "abi_cxx11_mismatch")


def test_other_python(examine, torch, file, python_311):
    torch.link_good(file)
    examine(H200, wheel_of(file, "cp311")).diagnosis("broken", "python_abi_tag_mismatch")


def test_own_name_never_linked(examine, torch, file, python_311):
    torch.link_module(file, *torch.objects("binding"))
    examine(CPU, file.name).diagnosis("broken", "own_symbol_undefined")


def test_newer_glibc(examine, environment, python_311):
    env = environment("bare")
    glibc_too_old(env)
    examine(CPU, env.module_file).diagnosis("broken", "glibc_too_old")


# The recorded machine does not say what its loader finds: no guess. One that does is believed.
def test_runtime_of_cuda_12(examine, scankit, torch, file, work, python_311):
    stub = stub_library(work / "stub", "libcudart.so.12", "cudaGetLastError", "libcudart.so.12")
    torch.link_module(file, *torch.objects("binding", "scan", "runtime"), stub)
    result = examine(CPU, file.name).diagnosis("unknown")
    assert "libcudart.so.12" in result.out, "the open question is not named"
    examine(taken(scankit), file.name).diagnosis("broken", "missing_cudart")


def test_stored_here(examine, scankit, torch, file):
    torch.link_good(file)
    here = taken(scankit)
    examine(here, file.name).diagnosis("healthy")
    torch.link_stale(file)
    examine(here, file.name).diagnosis("broken", "torch_version_mismatch")


# With export tables nothing is taken on trust, and the answer is the loader's own.
def test_with_exports(examine, scankit, torch, file):
    torch.link_good(file)
    here = taken(scankit, "--with-exports")
    assert os.path.getsize(here) < 6000000
    result = examine(here, file.name).diagnosis("healthy")
    assert not [line for line in result.json.get("not_checked", []) if "export tables" in json.dumps(line)], \
        "something was taken on trust although the tables are there"
    torch.link_stale(file)
    examine(here, file.name).diagnosis("broken", "torch_version_mismatch")
    examine(taken(scankit, "--with-exports", "--redact"), file.name).diagnosis("broken", "torch_version_mismatch")


def test_damaged_exports(examine, scankit, torch, file, work):
    torch.link_good(file)
    facts = json.loads((work / taken(scankit, "--with-exports")).read_text())
    for library in facts["exports"]["value"]["libraries"]:
        library["names"] = "AAAA"
    (work / "cut.json").write_text(json.dumps(facts))
    result = examine("cut.json", file.name)
    assert result.status >= 0, f"it crashed: {result!r}"
    # Damaged tables are no tables: never an excuse to call a name missing.
    assert not result.findings(severity="error"), "damaged tables became a fault of the file"


def test_no_such_snapshot(examine, torch, file):
    torch.link_good(file)
    examine("none.json", file.name).refused("none.json")


def test_no_such_file(examine):
    examine(CPU, "none.so").refused("none.so")


def test_with_python_too(examine):
    examine(CPU, "none.so", "--python", shared_python()).refused("--python")


# Wheels of the package index, for the torch of the recorded machines and for others: no file of ours.
@pytest.mark.ctest(labels="matrix;e2e", timeout=900)
def test_real_wheels(examine, work):
    wheels = CACHE / "wheels-elsewhere"
    for wish in ("torchvision==0.21.0", "torchvision==0.24.0", "torchvision==0.26.0", "torchaudio==2.9.0", "torchaudio==2.11.0"):
        shell_or_skip("fx_download", wheels, "--python-version", "312", "--implementation", "cp", "--only-binary=:all:", wish)

    def judge(wheel, snapshot, verdict, root=""):
        [path] = wheels.glob(f"{wheel}-*.whl")
        examine(snapshot, path).diagnosis(verdict, root)
    judge("torchvision-0.21.0", H200, "broken", "torch_version_mismatch")
    judge("torchvision-0.24.0", H200, "broken", "torch_version_mismatch")
    judge("torchvision-0.26.0", H200, "healthy")
    judge("torchaudio-2.9.0", H200, "broken", "torch_version_mismatch")
    judge("torchaudio-2.11.0", H200, "healthy")
    judge("torchvision-0.26.0", CPU, "broken", "python_abi_tag_mismatch")
    facts = json.loads(H200.read_text())
    facts["libc"]["value"]["version"] = "2.27"
    (work / "old.json").write_text(json.dumps(facts))
    judge("torchvision-0.26.0", "old.json", "broken", "glibc_too_old")
