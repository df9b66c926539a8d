# SPDX-License-Identifier: Apache-2.0
"""What the doctor is given is itself broken. One clear line, the documented exit status, everything else still reported."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from program import run_program

pytestmark = pytest.mark.ctest(group="bad_input", fixtures="torch_env;modules")


@pytest.fixture
def good(environment):
    """An environment with a good module."""
    env = environment()
    env.link_good()
    return env


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_missing_path(scankit, work):
    scankit.doctor("--python", work / "no/such/python").one_line(2, f"{work}/no/such/python")


def test_directory(scankit, work):
    scankit.doctor("--python", work).one_line(2, str(work))


def test_not_a_python(scankit):
    scankit.doctor("--python", "/bin/true").one_line(2, "/bin/true")


# A name that nothing here has, nor scankit knows: a slip, not an environment that lacks a module.
def test_module_that_means_nothing(scankit, good):
    scankit.doctor("--python", good.python, "--module", "selective_scan", "--no-import").one_line(
        2, "no module selective_scan; did you mean selective_scan_cuda?")
    scankit.doctor("--python", good.python, "--module", "my_ext_C", "--no-import").one_line(2, "no module my_ext_C")
    result = scankit.doctor("--python", good.python, "--module", "einops")
    assert result.status == 0, f"a Python package that is there and imports: {result!r}"


# Sources of a stranger: nothing of them is run, followed or believed.
def test_hostile_sources(scankit, good, work):
    sources = work / "sources"
    (sources / "csrc").mkdir(parents=True)
    (work / "outside").mkdir()
    setup = sources / "setup.py"
    (sources / "binary.py").write_bytes(os.urandom(400000))
    setup.write_text('from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension("m", [\n' +
                     "".join(f'  "csrc/file{i}.cu", "-std=c++14",\n' for i in range(1, 9001)))
    sources.joinpath(*["d"] * 200).mkdir(parents=True)
    (sources / "root").symlink_to("/")
    (sources / "loop").symlink_to(".")
    os.mkfifo(sources / "csrc/file1.cu")
    (sources / "csrc/file2.cu").symlink_to("/dev/zero")
    for name in ("nvcc", "c++", "gcc"):
        program(sources / name, f"#!/bin/sh\ntouch {work}/ran\n")
    # The user named the folder: its setup.py is read, and the programs in it are not started.
    static = ["--python", good.python, "--no-import"]
    result = scankit.doctor(*static, "--sources", "sources", variables={"PATH": f"{sources}:{os.environ['PATH']}"})
    assert result.status in (0, 1, 2, 4) and result.json, result
    assert not (work / "ran").exists(), "a program of the folder was started"
    with open(setup, "ab") as file:
        file.write(b"x" * 700000)
    scankit.doctor(*static, "--sources", "sources").one_line(2, "setup.py")
    setup.write_bytes(os.urandom(3000))
    scankit.doctor(*static, cwd=sources).diagnosis("healthy")
    scankit.doctor(*static, "--sources", "no/such/folder").one_line(2, "no/such/folder")


def test_script_shim(scankit, good, work):  # looked through, as pyenv's and conda's wrappers are
    shim = program(work / "shim", f'#!/bin/sh\nexec "{good.python}" "$@"\n')
    scankit.doctor("--python", shim).diagnosis("healthy")


def test_script_that_hangs(scankit, work):  # no Python behind it: refused by reading it, never run
    shim = program(work / "shim", "#!/bin/sh\nsleep 1000\n")
    scankit.doctor("--python", shim).one_line(2, str(shim))


# Which of the user's modules stops Python is not in any table: named with what was seen, and never healthy.
def test_startup_hangs(scankit, good):
    good.at_start("import time\ntime.sleep(1000)\n")
    scankit.doctor("--timeout", "5", "--python", good.python).diagnosis("broken", "import_hang", found=["import_hang"])


def test_startup_crashes(scankit, good):
    good.at_start("import os\nos.abort()\n")
    scankit.doctor("--python", good.python).diagnosis("broken", "import_crash", found=["import_crash"])


def test_torch_cannot_be_imported(scankit, environment):
    env = environment("plain")
    env.link_good()
    (env.site / "torch/lib/libc10.so").unlink()
    scankit.doctor("--python", env.python).diagnosis("broken", "torch_incomplete")


# An unreadable folder may hide anything: never healthy. Permissions do not hold for root, so this runs as nobody.
def test_unreadable_site_packages(scankit, request):
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    shutil.copy2(scankit.path, place / "scankit")
    assert run_program("/usr/bin/python3", "-m", "venv", "--without-pip", place / "env").status == 0
    [site] = place.glob("env/lib/python3*/site-packages")

    def remove():
        site.chmod(0o755)
        shutil.rmtree(place)
    request.addfinalizer(remove)
    site.chmod(0)
    user = []
    if os.getuid() == 0:
        assert run_program("chown", "-R", "65534:65534", place / "env").status == 0
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    somebody = scankit.with_(path=place / "scankit", before=user, variables={"HOME": place})
    result = somebody.doctor("--no-import", "--python", place / "env/bin/python", cwd="/").diagnosis("unknown")
    assert "site-packages" in result.out, "the report does not name the unreadable folder"


def test_module_vanishes(scankit, good, request):
    file = good.module_file
    mover = subprocess.Popen(["sh", "-c", 'while sleep 0.01; do mv "$0" "$0.away" && mv "$0.away" "$0"; done', file],
                             stderr=subprocess.DEVNULL)
    request.addfinalizer(mover.wait)
    request.addfinalizer(mover.kill)
    for turn in range(30):
        result = scankit.doctor("--no-import", "--python", good.python)
        assert result.status in (0, 1, 4), f"run {turn}: {result!r}"
        assert result.json["verdict"], f"run {turn}: no verdict"
