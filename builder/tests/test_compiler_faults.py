# SPDX-License-Identifier: Apache-2.0
"""What a build makes of a compiler that crashes, hangs, is killed or talks too much. Real crashes of a real compiler's process;
after each, nothing is installed and the cache holds nothing new."""
import os
import re
import signal
import time
from pathlib import Path

import pytest

from program import Result

pytestmark = pytest.mark.ctest(group="builder.compiler_faults", timeout=600)


@pytest.fixture
def builds(convolution, odd_nvrtc, work, monkeypatch):
    """The builds; their scratch directories are in WORK/tmp."""
    (work / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    convolution.odd = odd_nvrtc
    return convolution


def left_nothing(builds):
    images = [path for path in (builds.cache / "last").rglob("*") if path.is_file() and b"\nunit: " in b"\n" + path.read_bytes()]
    assert not images, f"the cache holds {len(images)} images"
    assert not os.listdir(builds.work / "tmp"), os.listdir(builds.work / "tmp")
    assert not (builds.out / builds.file).exists(), "a module was written"


@pytest.fixture
def fails(builds):
    """fails(HOW, ARCH, REASON, OPTION...): a build with that compiler is a failed build, says why, and leaves nothing behind."""
    def fails(how, arch, reason, *words, before=None):
        result = builds("--toolchain", builds.odd(how), "--arch", arch, *words, before=before).ends(5)
        left_nothing(builds)
        return named(result, arch, reason)
    return fails


def named(result, arch, reason):
    """With the unit, the target, and what happened."""
    return result.has_line(rf"^scankit build: compiling conv_[a-z0-9]* for {arch} failed: {reason}")


def gone(process):
    """Within five seconds."""
    for _ in range(100):
        if not os.path.exists(f"/proc/{process}"):
            return True
        time.sleep(0.05)
    return False


def test_crash(fails):
    fails("crash", "compute_90", r"the compiler crashed \(SIGSEGV\)").ends(5, "scankit build --list-toolchains")


def test_hang(fails, work):
    result = fails("hang", "compute_90", "the compiler exceeded its time limit of 2 seconds and was killed", "--timeout", 2)
    result.ends(5, "allow more with --timeout SECONDS")
    assert gone((work / "odd-hang/pid").read_text().strip()), "the compiler runs on"


@pytest.fixture
def hanging(builds, work):
    """Begins a build whose compiler hangs, and waits for that: (Popen, process id of the compiler)."""
    builder = builds.start("--toolchain", builds.odd("hang"), "--arch", "compute_90", "-j", 1, out=work / "out", err=work / "err")
    pid = work / "odd-hang/pid"
    for _ in range(200):
        if pid.exists() and pid.read_text().strip():
            break
        time.sleep(0.05)
    yield builder, int(pid.read_text())
    builder.kill()
    builder.wait()


def test_killed_builder(builds, hanging, need_nvrtc, work):
    """It takes its compiler with it; the next one removes its directory, and no other."""
    builder, compiler = hanging
    builder.kill()
    builder.wait()
    assert gone(compiler), "the compiler runs on"
    assert list((work / "tmp").glob("scankit-build.??????")), "there is nothing for the next one to remove"
    theirs = work / "tmp/scankit-build.theirs"  # as a user may name one
    theirs.mkdir()
    builds("--arch", "compute_75", "--toolchain", need_nvrtc, "--cache-dir", work / "cache-next", "--out", f"{work / 'next'}/").ends(0)
    theirs.rmdir()
    left_nothing(builds)


def test_killed_compiler(builds, hanging, work):
    """The OOM killer and batch systems end a process by SIGKILL."""
    builder, compiler = hanging
    os.kill(compiler, signal.SIGKILL)
    status = builder.wait(timeout=60)
    result = Result(builder.args, status, (work / "out").read_text(), (work / "err").read_text()).ends(5)
    left_nothing(builds)
    named(result, "compute_90", r"the compiler was killed \(SIGKILL\), most likely for lack of memory")
    result.ends(5, "one image at a time with -j 1")


def test_address_limit(fails):
    fails("eat", "compute_90", "the compiler ran out of memory", "-j", 1, before=["sh", "-c", 'ulimit -v 400000 && exec "$@"', "-"])


@pytest.fixture
def limited_group():
    """A new control group below ours with 300 MB and no swap."""
    of_memory = re.search(r"(?m)^\d*:memory:(.*)", Path("/proc/self/cgroup").read_text())
    limit = 300000000
    if of_memory:  # cgroup v1
        group = Path(f"/sys/fs/cgroup/memory{of_memory[1].rstrip('/')}/scankit-test-{os.getpid()}")
        limits = {"memory.limit_in_bytes": limit}
    else:
        own = re.search(r"(?m)^0::(.*)", Path("/proc/self/cgroup").read_text())
        group = Path(f"/sys/fs/cgroup{own[1] if own else ''}/scankit-test-{os.getpid()}")
        limits = {"memory.max": limit, "memory.swap.max": 0}
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control group can be made here: the OOM killer is not tried")
    try:
        for name, value in limits.items():
            (group / name).write_text(f"{value}\n")
    except OSError:
        group.rmdir()
        pytest.skip("no control group can be limited here: the OOM killer is not tried")
    yield group
    group.rmdir()


def test_out_of_memory(fails, limited_group):
    """The real killer, where this user may make a control group (root and cgroup v1, or v2 with memory delegated to it)."""
    fails("eat", "compute_90", "the kernel killed the compiler: the memory limit of this container or job was reached",
          before=["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', limited_group])


def test_long_log(fails):
    result = fails("noise", "compute_90", r"causal_conv1d.cu\([0-9]*\): error: .*this_name_is_nowhere")
    result.ends(5, "more lines of the compiler's log left out")
    assert len(result.err.splitlines()) < 20, result


def test_no_image(fails):
    fails("empty", "sm_90", "(NVRTC built no image|the compiler reported no error)")


def test_good_build_after_bad_ones(builds, fails, need_nvrtc):
    """It takes nothing from them."""
    for how in ("crash", "noise"):
        fails(how, "compute_90", "")
    fails("faulty", "sm_90", "the compiler reported no error but wrote no image")
    builds("--arch", "compute_90", "--toolchain", need_nvrtc).ends(0, "0 of 4 images from the cache")
